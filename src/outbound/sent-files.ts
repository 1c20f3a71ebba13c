import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, mkdir, open, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { getMimeType } from 'hono/utils/mime';
import { MoiraiError } from '../errors/moirai-error.ts';
import { makeRoom } from '../people/bounded-folder.ts';
import { type Abilities, type FileKind, type OutgoingFile, SendFailure } from '../platforms/platform.ts';

/** A file on its way out, as its row in the outbox keeps it. */
export interface KeptFile {
  readonly kind: FileKind;
  /** As people see it. */
  readonly name: string;
  readonly mime: string | null;
  /** Where the copy is: what becomes of the original meanwhile changes nothing. */
  readonly path: string;
}

const FOLDER = 'sent';
/** No platform takes more. */
const MAX_BYTES = 100 * 1024 * 1024;

export interface FileToKeep {
  readonly source: string;
  readonly workspace: string;
  /** What the files sent from one workspace may take; the oldest make room. */
  readonly maxFolderBytes: number;
  /** Why so many bytes are not taken where they go; null where they are, or where nobody knows yet. */
  readonly refusal: (bytes: number) => string | null;
}

/** Copies a file into `sent` of a workspace, from where it is sent. Throws `bad_input` where it cannot be. */
export async function keepToSend({ source, workspace, maxFolderBytes, refusal }: FileToKeep): Promise<KeptFile> {
  const name = basename(source);
  const { size } = await ordinaryFile(source);
  const refused = size > MAX_BYTES ? `files up to ${sizeText(MAX_BYTES)} can be sent` : refusal(size);
  if (refused !== null) throw new MoiraiError('bad_input', `${name} was not sent: ${refused}`);
  const folder = join(workspace, FOLDER);
  const [ending = ''] = /^\.[a-z0-9]{1,8}$/i.exec(extname(name)) ?? [];
  const path = join(folder, `${randomUUID()}${ending}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await copyFile(source, path, constants.COPYFILE_EXCL);
  await sync(path);
  await makeRoom(folder, maxFolderBytes);
  // Without the character set: nobody has looked at what is in it.
  const mime = getMimeType(name)?.split(';')[0] ?? null;
  return { kind: kindOf(mime), name, mime, path };
}

async function ordinaryFile(source: string): Promise<{ size: number }> {
  const found = await stat(source).catch((error: unknown) => {
    throw new MoiraiError('bad_input', `${basename(source)} cannot be read`, { cause: error });
  });
  if (!found.isFile()) throw new MoiraiError('bad_input', `${basename(source)} is not a file`);
  return found;
}

/** The row that names it may be there after a power cut: so must the file. */
async function sync(path: string): Promise<void> {
  await using file = await open(path, 'r+');
  await file.sync();
}

function kindOf(mime: string | null): FileKind {
  const [type] = (mime ?? '').split('/');
  // A drawing of lines is shown as a picture by hardly any platform.
  if (type === 'image') return mime === 'image/svg+xml' ? 'document' : 'image';
  return type === 'audio' || type === 'video' ? type : 'document';
}

/** Why a place does not take a file of this size; null where it does. */
export function refusalOf({ files }: Abilities, label: string, bytes: number): string | null {
  if (!files.out) return `${label} takes no files`;
  return bytes > files.maxBytes ? `${label} takes files up to ${sizeText(files.maxBytes)}` : null;
}

/** The bytes of files, as a platform sends them. Throws `SendFailure` where one is gone, or is not taken there. */
export async function readToSend(
  files: readonly KeptFile[],
  abilities: Abilities,
  label: string,
): Promise<OutgoingFile[]> {
  const read: OutgoingFile[] = [];
  for (const { kind, name, mime, path } of files) {
    const bytes = await bytesOf(path, name);
    const refusal = refusalOf(abilities, label, bytes.length);
    if (refusal !== null) throw new SendFailure(`${name} was not sent: ${refusal}`, null, 'too_large');
    read.push({ kind, name, mime, bytes });
  }
  return read;
}

async function bytesOf(path: string, name: string): Promise<Uint8Array> {
  try {
    await using file = await open(path);
    return await file.readFile();
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error;
    throw new SendFailure(`${name} was not sent: its copy is not on this machine any more`, null);
  }
}

function sizeText(bytes: number): string {
  const whole = Math.floor(bytes / (1024 * 1024));
  return whole === 0 ? `${bytes} bytes` : `${whole} MB`;
}
