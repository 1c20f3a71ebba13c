import { withDeadline } from '../deadline.ts';
import { fieldsOf, listOf, textOf } from '../fields.ts';
import { downloadFrom, unanswered } from '../http.ts';
import { SendFailure } from '../platform.ts';
import type { DiscordApi } from './api.ts';
import { type FileRef, readRef } from './parse-content.ts';
import { snowflakeOf } from './snowflake.ts';

const DOWNLOAD_MS = 120_000;
const HOSTS: ReadonlySet<string> = new Set(['cdn.discordapp.com', 'media.discordapp.net']);

/**
 * Reads a file that came with a message, from Discord's own hosts and no others. Its address counts for a day: after that
 * the message is asked for another one. Throws `SendFailure`.
 */
export async function downloadFile(
  api: DiscordApi,
  ref: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const file = readRef(ref);
  if (file === null) throw new SendFailure('that is no file of Discord', null);
  const read = (url: string) => fetchFrom(api, url, maxBytes, signal);
  try {
    return await read(file.url);
  } catch (thrown) {
    const isOver = thrown instanceof SendFailure && thrown.retryAfterMs === null && thrown.kind === 'unknown';
    if (!isOver || !isOurs(api, file.url)) throw thrown;
    return await read(await freshAddress(api, file, signal));
  }
}

async function fetchFrom(api: DiscordApi, url: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  if (!isOurs(api, url)) throw new SendFailure("the file is not on one of Discord's servers", null);
  const { pathname, search } = new URL(url);
  const address = api.apiRoot === null ? url : `${api.apiRoot}${pathname}${search}`;
  try {
    return await withDeadline(signal, DOWNLOAD_MS, (deadline) => downloadFrom(address, {}, maxBytes, deadline));
  } catch (thrown) {
    throw unanswered(thrown, api.redact);
  }
}

function isOurs({ apiRoot }: DiscordApi, address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, origin, port } = new URL(address);
  if (apiRoot !== null && origin === new URL(apiRoot).origin) return true;
  return protocol === 'https:' && HOSTS.has(hostname) && port === '';
}

async function freshAddress(api: DiscordApi, file: FileRef, signal: AbortSignal): Promise<string> {
  const [channel, message] = [snowflakeOf(file.channel), snowflakeOf(file.message)];
  if (channel === null || message === null) throw new SendFailure('the file is gone', null);
  const found = fieldsOf(await api.call('GET', `/channels/${channel}/messages/${message}`, {}, signal));
  const passedOn = listOf(found?.message_snapshots).map((each) => fieldsOf(fieldsOf(each)?.message));
  const attachments = [found, ...passedOn].flatMap((each) => listOf(each?.attachments));
  const attachment = attachments.map(fieldsOf).find((each) => each?.id === file.file);
  const url = textOf(attachment?.url, 2048);
  if (url === null) throw new SendFailure('the file is gone: somebody removed it', null);
  return url;
}
