import type { Connection } from '../connection.ts';
import { pause } from '../deadline.ts';
import { SocketLost, troubleOf, UnusableToken } from './failures.ts';
import type { SlackBot, SlackOptions } from './slack-client.ts';
import { type SocketHandlers, SocketLink } from './socket.ts';

const PAUSE_MS = 500;

interface ConnectingOptions {
  readonly options: SlackOptions;
  readonly bot: SlackBot;
  readonly connection: Connection;
  readonly received: SocketHandlers['received'];
  /** Nobody was connected for a while. Called before anything comes over the new socket. */
  readonly gap: () => void;
}

/**
 * Keeps a socket open until the signal ends it or there is no use in trying. A socket that Slack is going to end stays
 * until the next one is open, so that nothing is missed between. What has come is acknowledged before the last one is closed.
 */
export async function keepConnected(
  { options, bot, connection, received, gap }: ConnectingOptions,
  signal: AbortSignal,
): Promise<void> {
  let old: SocketLink | null = null;
  const opened = (): void => {
    if (old?.isOpen !== true) gap();
  };
  while (!signal.aborted) {
    try {
      const link: SocketLink = await SocketLink.connect(options, bot, { opened, received }, signal);
      connection.succeeded();
      // What has come over it is acknowledged over it.
      old?.finish().catch(() => undefined);
      old = null;
      const end = await endOf(link, signal);
      if (end === 'stopped') return await link.finish();
      if (end === 'replace') {
        old = link;
        // A server that wants each socket replaced at once is not asked without a pause.
        await pause(bot.runtime, PAUSE_MS, signal);
      }
      if (end === 'closed') throw new SocketLost('Slack ended the connection');
    } catch (thrown) {
      if (signal.aborted) break;
      if ((await connection.failed(namingToken(thrown, bot), signal)).phase === 'failed') break;
    }
  }
  await old?.finish();
}

/** There are two tokens, and sockets are opened with the other one. */
function namingToken(thrown: unknown, { redact }: SlackBot): unknown {
  const { phase, problem } = troubleOf(thrown, redact);
  return phase === 'failed' ? new UnusableToken(`app_token: ${problem}`) : thrown;
}

async function endOf(link: SocketLink, signal: AbortSignal): Promise<'closed' | 'replace' | 'stopped'> {
  const { promise, resolve } = Promise.withResolvers<'stopped'>();
  const stop = (): void => resolve('stopped');
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([link.ended, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
