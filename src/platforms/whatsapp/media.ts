import { withDeadline } from '../deadline.ts';
import { integerOf, textOf } from '../fields.ts';
import { downloadFrom } from '../http.ts';
import { type OutgoingFile, SendFailure } from '../platform.ts';
import type { Payload } from './compose.ts';
import { sendFailureOf } from './failures.ts';
import type { GraphApi } from './graph-api.ts';

const CALL_MS = 30_000;
const DOWNLOAD_MS = 120_000;
const UPLOAD_MS = 300_000;
const MB = 1024 * 1024;

/** Where Meta keeps what people sent; nobody else gets the token. */
const MEDIA_HOSTS = /^(?:graph\.facebook\.com|(?:[a-z0-9-]+\.)*(?:fbsbx\.com|fbcdn\.net|whatsapp\.net))$/;

/** Reads a file that a person sent, by its id: the address that belongs to it is good for some minutes only. */
export async function downloadMedia(
  api: GraphApi,
  id: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await withDeadline(signal, DOWNLOAD_MS, async (deadline) => {
      const path = `${encodeURIComponent(id)}?phone_number_id=${encodeURIComponent(api.phoneNumberId)}`;
      const { url, file_size: bytes } = await api.call(path, {}, CALL_MS, deadline);
      if ((integerOf(bytes) ?? 0) > maxBytes) {
        throw new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
      }
      return await downloadFrom(mediaAddress(url, api.apiRoot), api.authorization, maxBytes, deadline);
    });
  } catch (thrown) {
    throw sendFailureOf(thrown, api.redact);
  }
}

/** Where a file is read, from what the server says; throws `SendFailure` for an address that is none of Meta's. */
export function mediaAddress(given: unknown, apiRoot: string | null): string {
  const url = URL.parse(textOf(given) ?? '');
  if (url !== null && apiRoot !== null) return `${apiRoot}${url.pathname}${url.search}`;
  if (url?.protocol === 'https:' && url.port === '' && MEDIA_HOSTS.test(url.hostname)) return url.href;
  throw new SendFailure('the file is offered at an address that is not one of Meta', null);
}

type MediaType = 'image' | 'audio' | 'video' | 'sticker' | 'document';

/** What Meta takes as one of these, and up to which size; everything else is a document. */
const KINDS: Readonly<Record<OutgoingFile['kind'], { type: MediaType; mimes: readonly string[]; maxBytes: number }>> = {
  image: { type: 'image', mimes: ['image/jpeg', 'image/png'], maxBytes: 5 * MB },
  sticker: { type: 'sticker', mimes: ['image/webp'], maxBytes: 500 * 1024 },
  audio: { type: 'audio', mimes: audioTypes(), maxBytes: 16 * MB },
  voice: { type: 'audio', mimes: audioTypes(), maxBytes: 16 * MB },
  video: { type: 'video', mimes: ['video/mp4', 'video/3gpp'], maxBytes: 16 * MB },
  document: { type: 'document', mimes: [], maxBytes: 100 * MB },
};

function audioTypes(): readonly string[] {
  return ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'];
}

const OFFICE = 'application/vnd.openxmlformats-officedocument';

/** By the ending of a name; only what Meta takes. */
const BY_ENDING: Readonly<Record<string, string>> = {
  ...{ jpg: 'image/jpeg', jpeg: 'image/jpeg', png: 'image/png', webp: 'image/webp' },
  ...{ aac: 'audio/aac', amr: 'audio/amr', mp3: 'audio/mpeg', m4a: 'audio/mp4', ogg: 'audio/ogg', opus: 'audio/ogg' },
  ...{ mp4: 'video/mp4', '3gp': 'video/3gpp', pdf: 'application/pdf', txt: 'text/plain' },
  ...{ doc: 'application/msword', xls: 'application/vnd.ms-excel', ppt: 'application/vnd.ms-powerpoint' },
  docx: `${OFFICE}.wordprocessingml.document`,
  xlsx: `${OFFICE}.spreadsheetml.sheet`,
  pptx: `${OFFICE}.presentationml.presentation`,
};

const TAKEN = new Set(Object.values(BY_ENDING));
/** Meta takes uploads of the types above and no others; the name still says what a document is. */
const ANYTHING_ELSE = 'text/plain';

/** How a file is sent: as what it is where Meta takes that, else as a document. */
export function mediaTypeOf(file: OutgoingFile): { readonly type: MediaType; readonly mime: string } {
  const mime = mimeOf(file);
  const { type, mimes, maxBytes } = KINDS[file.kind];
  const fits = mime !== null && mimes.includes(mime) && file.bytes.length <= maxBytes;
  return { type: fits ? type : 'document', mime: mime ?? ANYTHING_ELSE };
}

/** Whether words can stand under it. */
export function takesCaption(file: OutgoingFile): boolean {
  const { type } = mediaTypeOf(file);
  return type === 'image' || type === 'video' || type === 'document';
}

function mimeOf({ mime, name }: OutgoingFile): string | null {
  const given = mime?.split(';')[0]?.trim().toLowerCase();
  if (given !== undefined && TAKEN.has(given)) return given;
  const ending = name.split('.').at(-1)?.toLowerCase() ?? '';
  return Object.hasOwn(BY_ENDING, ending) ? (BY_ENDING[ending] ?? null) : null;
}

/** Gives the server a file; returns the message that shows it. */
export async function uploadMedia(
  api: GraphApi,
  file: OutgoingFile,
  caption: string,
  signal: AbortSignal,
): Promise<Payload> {
  const { type, mime } = mediaTypeOf(file);
  const name = fileNameOf(file);
  const form = new FormData();
  form.set('messaging_product', 'whatsapp');
  form.set('type', mime);
  form.set('file', new Blob([file.bytes as Uint8Array<ArrayBuffer>], { type: mime }), name);
  const { id } = await api.call(`${api.phoneNumberId}/media`, { method: 'POST', body: form }, UPLOAD_MS, signal);
  const media = textOf(id, 128);
  if (!media) throw new SendFailure('the server took a file and gave it no id', null);
  const words = caption.trim() === '' ? {} : { caption };
  return { type, [type]: { id: media, ...words, ...(type === 'document' ? { filename: name } : {}) } };
}

/** Without its folder, which stays private, and without what would end the header it stands in. */
export function fileNameOf({ name }: OutgoingFile): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/["\r\n\0]/g, '_') || 'file';
}
