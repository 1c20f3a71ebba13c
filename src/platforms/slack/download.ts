import { withDeadline } from '../deadline.ts';
import { fieldsOf, integerOf } from '../fields.ts';
import { downloadFrom } from '../http.ts';
import { SendFailure } from '../platform.ts';
import { sendFailureOf } from './failures.ts';
import type { SlackBot } from './slack-client.ts';

const DOWNLOAD_MS = 120_000;

/**
 * Reads a file that a person sent. Its address is asked for each time, since it changes, and used only where it is
 * Slack's own: the token goes along.
 */
export async function downloadFile(
  bot: SlackBot,
  id: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await withDeadline(signal, DOWNLOAD_MS, async (deadline) => {
      const file = fieldsOf((await bot.call('files.info', { file: id }, deadline)).file);
      if ((integerOf(file?.size) ?? 0) > maxBytes) {
        throw new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
      }
      const url = bot.addressOf(file?.url_private_download ?? file?.url_private);
      if (url === null) throw new SendFailure('the file is not kept by Slack itself', null);
      const bytes = await downloadFrom(url.href, bot.bearer, maxBytes, deadline);
      if (file?.mimetype !== 'text/html' && isPage(bytes)) {
        throw new SendFailure('Slack did not give the file: the app lacks the scope files:read', null, 'forbidden');
      }
      return bytes;
    });
  } catch (thrown) {
    throw sendFailureOf(thrown, bot.redact);
  }
}

/** Slack shows a page to log in at, with success, to who may not have the file. */
function isPage(bytes: Uint8Array): boolean {
  return /^\s*<!doctype html/i.test(Buffer.from(bytes.subarray(0, 64)).toString('latin1'));
}
