import { SendFailure } from '../platform.ts';
import { type Bot, withDeadline } from './bot-api.ts';
import { sendFailureOf } from './failures.ts';

const DOWNLOAD_MS = 120_000;
const RETRY_MS = 1000;

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
    return await withDeadline(signal, DOWNLOAD_MS, async (deadline) => {
      const { file_path: path, file_size: bytes } = await api.getFile({ file_id: fileId }, deadline);
      if (bytes !== undefined && bytes > maxBytes) throw tooLarge(maxBytes);
      const response = await fetch(addressOf(fileRoot, path), { redirect: 'manual', signal: deadline });
      return await readBody(response, maxBytes);
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

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (!response.ok) {
    await response.body?.cancel();
    const mayPass = response.status >= 500 || response.status === 429;
    throw new SendFailure(`the file was not given: ${response.status}`, mayPass ? RETRY_MS : null);
  }
  if (Number(response.headers.get('content-length') ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge(maxBytes);
  }
  // The header may be missing or lie, so that what comes is counted as well.
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(maxBytes: number): SendFailure {
  return new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_long');
}
