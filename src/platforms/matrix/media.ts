import { withDeadline } from '../deadline.ts';
import { downloadFrom, unanswered } from '../http.ts';
import { type OutgoingFile, SendFailure } from '../platform.ts';
import { at, type MatrixApi } from './api.ts';
import { fileName, mimeOf } from './compose.ts';
import { isRefusal } from './failures.ts';
import { isMedia, mediaOf } from './media-address.ts';

const TRANSFER_MS = 300_000;

/**
 * Reads a file that a person sent, from our own homeserver, which has it from theirs. Servers of before 2024 know only the
 * older address. Throws `SendFailure`.
 */
export async function downloadFile(
  api: MatrixApi,
  address: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const media = mediaOf(address);
  if (media === null) throw new SendFailure('the file has no address that can be read', null);
  const { server, id } = media;
  const paths = [at`/_matrix/client/v1/media/download/${server}/${id}`, at`/_matrix/media/v3/download/${server}/${id}`];
  let failure: SendFailure | null = null;
  for (const path of paths) {
    try {
      return await withDeadline(signal, TRANSFER_MS, (deadline) =>
        downloadFrom(`${api.root}${path}`, api.headers, maxBytes, deadline),
      );
    } catch (thrown) {
      const why = unanswered(thrown, api.redact);
      if (why.kind === 'too_large' || why.retryAfterMs !== null) throw why;
      failure ??= why;
    }
  }
  throw failure ?? new SendFailure('the file was not given', null);
}

/** Gives the server a file; returns its address there. Throws what `sendFailureOf` understands. */
export async function uploadFile(api: MatrixApi, file: OutgoingFile, signal: AbortSignal): Promise<string> {
  const headers = { 'content-type': mimeOf(file) };
  const call = { method: 'POST', headers, body: file.bytes as Uint8Array<ArrayBuffer>, ms: TRANSFER_MS };
  try {
    const query = { filename: fileName(file) };
    const { content_uri: address } = await api.call('/_matrix/media/v3/upload', signal, { ...call, query });
    if (typeof address === 'string' && isMedia(address)) return address;
  } catch (thrown) {
    if (!isRefusal(thrown, 'M_TOO_LARGE')) throw thrown;
    throw new SendFailure(`the homeserver takes no file of ${file.bytes.length} bytes`, null, 'too_large');
  }
  throw new SendFailure('the homeserver gave the file no address', null);
}
