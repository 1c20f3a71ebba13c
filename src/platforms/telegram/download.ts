import { withDeadline } from '../deadline.ts';
import { downloadFrom } from '../http.ts';
import { SendFailure } from '../platform.ts';
import type { Bot, CallSignal } from './bot-api.ts';
import { sendFailureOf } from './failures.ts';

const DOWNLOAD_MS = 120_000;

/**
 * Reads a file that a person sent. The request goes to the Bot API's own server and nowhere else, and its address, which
 * contains the token, stays here.
 */
export async function downloadFile(
  { api, fileRoot, redact }: Bot,
  fileId: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await withDeadline(signal, DOWNLOAD_MS, async (deadline: CallSignal) => {
      const { file_path: path, file_size: bytes } = await api.getFile({ file_id: fileId }, deadline);
      if (bytes !== undefined && bytes > maxBytes) {
        throw new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
      }
      return await downloadFrom(addressOf(fileRoot, path), {}, maxBytes, deadline as unknown as AbortSignal);
    });
  } catch (thrown) {
    throw sendFailureOf(thrown, redact);
  }
}

function addressOf(fileRoot: string, path: string | undefined): string {
  const steps = path?.split('/') ?? [''];
  // A server in local mode names a file on its own disk; a step upwards would leave the files.
  if (steps.some((step) => step === '' || step === '.' || step === '..')) {
    throw new SendFailure('the server offers the file under no address that can be read', null);
  }
  return `${fileRoot}/${steps.map(encodeURIComponent).join('/')}`;
}
