import { type Fields, fieldsOf, integerOf, nameOf, textOf } from '../fields.ts';
import type { FileKind, IncomingFile } from '../platform.ts';

const MOST_FILES = 20;

/** The files of a message, in order. */
export function filesOf(attachments: readonly unknown[], messageId: string): readonly IncomingFile[] {
  return attachments.slice(0, MOST_FILES).flatMap((each, index) => {
    const file = fieldsOf(each);
    return file === null ? [] : (fileOf(file, `${messageId}:${index}`) ?? []);
  });
}

function fileOf(file: Fields, id: string): IncomingFile | null {
  const type = nameOf(file.content_type)?.toLowerCase() ?? '';
  const name = baseName(file.filename);
  const kind = kindOf(type, name);
  // Voice comes as SILK, which hardly anything reads, and again as WAV.
  const wav = kind === 'voice' ? addressOf(file.voice_wav_url) : null;
  const ref = wav ?? addressOf(file.url);
  if (ref === null) return null;
  const bytes = integerOf(file.size);
  return {
    ...{ kind, id, name, ref },
    mime: wav === null ? mimeOf(type) : 'audio/wav',
    bytes: bytes !== null && bytes >= 0 && wav === null ? bytes : null,
    // What QQ has understood of it.
    hint: kind === 'voice' ? textOf(file.asr_refer_text, 2000)?.trim() || null : null,
  };
}

function kindOf(type: string, name: string | null): FileKind {
  if (type.startsWith('image')) return 'image';
  if (type === 'voice' || /\.(?:silk|amr)$/i.test(name ?? '')) return 'voice';
  if (type.startsWith('video')) return 'video';
  return type.startsWith('audio') ? 'audio' : 'document';
}

/** Some kinds are no MIME type. */
function mimeOf(type: string): string | null {
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(type) ? type : null;
}

/** Some come without their scheme. */
function addressOf(value: unknown): string | null {
  const written = textOf(value, 4096)?.trim();
  if (!written) return null;
  const address = written.startsWith('//') ? `https:${written}` : written;
  const whole = /^[a-z][a-z\d+.-]{0,15}:/i.test(address) ? address : `https://${address}`;
  return URL.canParse(whole) && /^https?:$/.test(new URL(whole).protocol) ? whole : null;
}

/** No name from outside leads to another folder. */
function baseName(value: unknown): string | null {
  const name = nameOf(value)?.split(/[/\\]/).at(-1)?.trim();
  return name === undefined || name === '' || name === '.' || name === '..' ? null : name;
}
