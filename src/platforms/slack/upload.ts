import { nameOf } from '../fields.ts';
import { callHttp } from '../http.ts';
import { type OutgoingFile, type Place, SendFailure } from '../platform.ts';
import { sendFailureOf } from './failures.ts';
import { idOf } from './places.ts';
import type { Sending } from './send.ts';
import type { SlackBot } from './slack-client.ts';

const UPLOAD_MS = 300_000;
const RETRY_MS = 1000;

/**
 * Uploads files and shows them as one message: an address for each, the bytes there, then all of them shared. Slack does
 * not tell which message they become; returns the id of the first file. Throws `SendFailure`.
 */
export async function uploadFiles(
  sending: Sending,
  bot: SlackBot,
  { chat, thread }: Place,
  files: readonly OutgoingFile[],
  signal: AbortSignal,
): Promise<string> {
  const uploaded: { id: string; title: string }[] = [];
  for (const file of files) uploaded.push(await uploadFile(sending, bot, file, signal));
  const at = thread === undefined ? {} : { thread_ts: thread };
  const share = { files: uploaded, channel_id: chat, ...at };
  await sending.call('files.completeUploadExternal', share, signal, UPLOAD_MS);
  return uploaded[0]?.id ?? '';
}

async function uploadFile(sending: Sending, bot: SlackBot, file: OutgoingFile, signal: AbortSignal) {
  const name = baseName(file);
  const wanted = { filename: name, length: file.bytes.length };
  const given = await sending.call('files.getUploadURLExternal', wanted, signal);
  const id = idOf(given.file_id);
  const url = bot.addressOf(given.upload_url);
  if (id === null || url === null) throw new SendFailure('Slack gave no address for the file that is its own', null);
  const body = Buffer.from(file.bytes);
  const headers = { 'content-type': 'application/octet-stream' };
  try {
    const { status } = await callHttp(url.href, { method: 'POST', headers, body }, UPLOAD_MS, signal);
    if (status === 200) return { id, title: name };
    throw new SendFailure(`Slack did not take the file: ${status}`, status >= 500 ? RETRY_MS : null, kindOf(status));
  } catch (thrown) {
    const failure = sendFailureOf(thrown, bot.redact);
    // Bytes that nobody has shared yet are no message: they can be sent again.
    throw failure.kind === 'uncertain' ? new SendFailure(failure.message, RETRY_MS, 'transient') : failure;
  }
}

function kindOf(status: number): 'transient' | 'too_large' | 'unknown' {
  return status >= 500 ? 'transient' : status === 413 ? 'too_large' : 'unknown';
}

/** Without its folder, which stays private. */
export function baseName({ name }: OutgoingFile): string {
  return nameOf(name.split(/[/\\]/).at(-1)) ?? 'file';
}
