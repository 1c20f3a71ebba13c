import { withDeadline } from '../deadline.ts';
import { downloadFrom, unanswered } from '../http.ts';
import { SendFailure } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import { mediaAddress } from './media-address.ts';

const DOWNLOAD_MS = 120_000;

/** Reads a file that a person sent. Its address is signed and good for a while only; there is no other way to it. */
export async function downloadFile(
  { root, redact }: { readonly root: string | null; readonly redact: Redact },
  ref: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const address = mediaAddress(ref, root);
  if (address === null) throw new SendFailure('the file is not on a server of QQ', null);
  try {
    return await withDeadline(signal, DOWNLOAD_MS, (deadline) => downloadFrom(address, {}, maxBytes, deadline));
  } catch (thrown) {
    throw unanswered(thrown, redact);
  }
}
