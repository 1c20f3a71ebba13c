import { createHash } from 'node:crypto';
import { withDeadline } from '../deadline.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../fields.ts';
import { unanswered } from '../http.ts';
import { type OutgoingFile, type Place, SendFailure } from '../platform.ts';
import type { QqApi } from './api.ts';
import { mediaAddress } from './media-address.ts';
import { QqError } from './qq-error.ts';
import { pathOf } from './scenes.ts';

const UPLOAD_MS = 300_000;
const PART_MS = 120_000;
/** What is larger goes in parts, to where the server says. */
const MOST_AT_ONCE = 10 * 1024 * 1024;
/** QQ knows large files again by their beginning. */
const BEGINNING = 10_002_432;
const MOST_PARTS = 1000;

const FILE_TYPES = { picture: 1, video: 2, voice: 3, document: 4 } as const;

/** Brings a file to the server; returns what names it in a message to that place. */
export async function uploadFile(
  api: QqApi,
  place: Place,
  file: OutgoingFile,
  asDocument: boolean,
  signal: AbortSignal,
): Promise<string> {
  const path = pathOf(place);
  const file_type = asDocument ? FILE_TYPES.document : fileTypeOf(file);
  const head = { file_type, file_name: nameOf(file), srv_send_msg: false };
  const source =
    file.bytes.length <= MOST_AT_ONCE
      ? { file_data: Buffer.from(file.bytes).toString('base64') }
      : { upload_id: await uploadParts(api, path, file, head, signal) };
  const given = await beforeMessage(() =>
    api.call({ method: 'POST', path: `${path}/files`, json: { ...head, ...source } }, signal, UPLOAD_MS),
  );
  return textOf(given.file_info) || unusable('the server does not name the file');
}

/** A picture or a voice that QQ cannot show as such is a file to it. */
function fileTypeOf({ kind, name, mime }: OutgoingFile): number {
  const is = (types: RegExp) => types.test(mime ?? '') || types.test(name);
  if ((kind === 'image' || kind === 'sticker') && is(/\b(?:png|jpe?g)$/i)) return FILE_TYPES.picture;
  if (kind === 'video' && is(/\bmp4$/i)) return FILE_TYPES.video;
  return kind === 'voice' && is(/\b(?:silk|wav|mp3|mpeg|ogg)$/i) ? FILE_TYPES.voice : FILE_TYPES.document;
}

interface Head {
  readonly file_type: number;
  readonly file_name: string;
}

async function uploadParts(
  api: QqApi,
  path: string,
  { bytes }: OutgoingFile,
  { file_type, file_name }: Head,
  signal: AbortSignal,
): Promise<string> {
  const json = {
    ...{ file_type, file_name, file_size: String(bytes.length) },
    ...{ md5: digest('md5', bytes), sha1: digest('sha1', bytes), md5_10m: digest('md5', bytes.subarray(0, BEGINNING)) },
  };
  const plan = await beforeMessage(() => api.call({ method: 'POST', path: `${path}/upload_prepare`, json }, signal));
  const uploadId = textOf(plan.upload_id) || unusable('the server does not name the upload');
  let offset = 0;
  for (const each of listOf(plan.parts).slice(0, MOST_PARTS)) {
    const part = fieldsOf(each) ?? {};
    const size = Number(part.block_size ?? plan.block_size);
    if (!Number.isSafeInteger(size) || size <= 0) unusable('the server does not say how large a part is');
    // They follow each other; their numbers begin at 0 or at 1.
    const block = bytes.subarray(offset, offset + size);
    offset += block.length;
    await putPart(api, String(part.presigned_url), block, signal);
    const json = { upload_id: uploadId, part_index: part.index, block_size: String(block.length) };
    const done: Fields = { ...json, md5: digest('md5', block) };
    await beforeMessage(() => api.call({ method: 'POST', path: `${path}/upload_part_finish`, json: done }, signal));
  }
  return offset === bytes.length ? uploadId : unusable('the server does not want the whole file');
}

async function putPart(api: QqApi, url: string, block: Uint8Array, signal: AbortSignal): Promise<void> {
  const address = mediaAddress(url, api.options.mediaRoot) ?? unusable('the server names no address for a part');
  const status = await beforeMessage(() =>
    withDeadline(signal, PART_MS, async (deadline) => {
      // It is signed: the access token is none of its business.
      const put = { method: 'PUT', body: Buffer.from(block), redirect: 'manual', signal: deadline } as const;
      const response = await fetch(address, put);
      await response.body?.cancel();
      return response.status;
    }),
  );
  if (status >= 200 && status < 300) return;
  throw new SendFailure(`a part of the file was not taken: ${status}`, status >= 500 ? RETRY_MS : null, 'transient');
}

const RETRY_MS = 1000;

/** Whatever becomes of it, no message has been sent yet. */
async function beforeMessage<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    if (thrown instanceof QqError) throw thrown;
    const { message, retryAfterMs, kind } = unanswered(thrown, (text) => text);
    throw new SendFailure(message, retryAfterMs, kind === 'uncertain' ? 'transient' : kind);
  }
}

function unusable(reason: string): never {
  throw new SendFailure(reason, RETRY_MS, 'transient');
}

function digest(algorithm: 'md5' | 'sha1', bytes: Uint8Array): string {
  return createHash(algorithm).update(bytes).digest('hex');
}

/** Without its folder, which stays private. */
function nameOf({ name }: OutgoingFile): string {
  return (name.split(/[/\\]/).at(-1) ?? '').replace(/[\r\n\0]/g, '_') || 'file';
}
