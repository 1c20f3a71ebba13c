import { SocketModeClient } from '@slack/socket-mode';
import { pause } from '../deadline.ts';
import { type Fields, fieldsOf } from '../fields.ts';
import { SocketLost, UnusableToken } from './failures.ts';
import { clientOptions, SILENT, type SlackBot, type SlackOptions } from './slack-client.ts';

const HELLO_MS = 20_000;
/** Slack sends pings and answers ours; a socket on which neither comes is as good as cut. */
const PONG_MS = 8000;
const PING_MS = 30_000;
const LOOK_MS = 1000;
const CLOSE_MS = 1000;

/** What Slack sends over a socket; it comes again until it is acknowledged. */
export interface Envelope {
  readonly id: string;
  readonly payload: unknown;
}

export interface SocketHandlers {
  /** Slack is ready; whatever it sends comes after this. */
  readonly opened: () => void;
  /** Resolves when the envelope is to be acknowledged with this body, null for not at all. Never rejects. */
  readonly received: (envelope: Envelope) => Promise<Fields | null>;
}

/**
 * One socket of Slack's socket mode, from its first answer to its end. The library asks for the address, speaks the
 * protocol and watches for silence. Its own reading of frames is left out: it rejects on a malformed one, where nobody
 * hears it, and a frame could name an event of the library's own.
 */
export class SocketLink {
  readonly #client: SocketModeClient;
  readonly #bot: SlackBot;
  readonly #handlers: SocketHandlers;
  readonly #open = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<'closed' | 'replace'>();
  readonly #working = new Set<Promise<void>>();
  #problem: unknown = null;
  #isReady = false;
  #isClosed = false;

  private constructor(client: SocketModeClient, bot: SlackBot, handlers: SocketHandlers) {
    this.#client = client;
    this.#bot = bot;
    this.#handlers = handlers;
    client.removeAllListeners('ws_message');
    client.on('ws_message', (data: unknown) => this.#read(data));
    client.on('error', (thrown: unknown) => {
      this.#problem = thrown;
    });
    client.on('disconnected', () => this.#over());
  }

  /** Resolves when Slack is ready to send. Throws what `troubleOf` understands. */
  static async connect(
    options: SlackOptions,
    bot: SlackBot,
    handlers: SocketHandlers,
    signal: AbortSignal,
  ): Promise<SocketLink> {
    const client = new SocketModeClient({
      appToken: options.appToken,
      autoReconnectEnabled: false,
      clientPingTimeout: PONG_MS,
      serverPingTimeout: PING_MS,
      logger: SILENT,
      clientOptions: { ...clientOptions(options.apiRoot), fetch: (url, init) => askForAddress(bot, url, init, signal) },
    });
    const link = new SocketLink(client, bot, handlers);
    const enough = AbortSignal.any([signal, AbortSignal.timeout(HELLO_MS)]);
    const giveUp = (): void => link.#over();
    enough.addEventListener('abort', giveUp, { once: true });
    try {
      // It rejects with nothing when the socket ends before; why, the socket has told before.
      await Promise.race([client.start().then(() => link.#open.promise), link.#failure()]);
    } catch (thrown) {
      link.close();
      throw thrown ?? link.#lost();
    } finally {
      enough.removeEventListener('abort', giveUp);
    }
    void link.#watch();
    return link;
  }

  /** `replace`: Slack is going to end this socket and wants another opened before. */
  get ended(): Promise<'closed' | 'replace'> {
    return this.#ended.promise;
  }

  get isOpen(): boolean {
    return !this.#isClosed && this.#client.websocket?.isActive() === true;
  }

  /** Ends it when everything that was received is over, and what acknowledges it has left. */
  async finish(): Promise<void> {
    await Promise.all(this.#working);
    const closed = new AbortController();
    this.#client.once('disconnected', () => closed.abort());
    this.#client.disconnect().catch(() => undefined);
    await pause(this.#bot.runtime, CLOSE_MS, closed.signal);
    this.close();
  }

  /** Ends it at once, whatever the other side does. */
  close(): void {
    this.#isClosed = true;
    // The first call asks the server to close, the second does not wait for it.
    for (const _ of ['politely', 'at once']) this.#client.disconnect().catch(() => undefined);
    this.#ended.resolve('closed');
  }

  #over(): void {
    if (!this.#isClosed) this.close();
  }

  async #failure(): Promise<never> {
    await this.#ended.promise;
    throw this.#lost();
  }

  #lost(): unknown {
    return this.#problem ?? new SocketLost('Slack ended the connection');
  }

  /** The library asks a silent server to close the socket, and waits for that long after it has noticed. */
  async #watch(): Promise<void> {
    const { runtime } = this.#bot;
    const never = new AbortController().signal;
    while (!this.#isClosed) {
      if (!this.isOpen) return this.close();
      await pause(runtime, LOOK_MS, never);
    }
  }

  #read(data: unknown): void {
    const frame = frameOf(data);
    if (frame === null || this.#isClosed) return;
    if (frame.type === 'hello') {
      if (this.#isReady) return;
      this.#isReady = true;
      this.#handlers.opened();
      this.#open.resolve();
      this.#client.emit('connected');
    } else if (frame.type === 'disconnect') {
      this.#ended.resolve('replace');
    } else if (typeof frame.envelope_id === 'string') {
      const working = this.#take(frame.envelope_id, frame.payload).finally(() => this.#working.delete(working));
      this.#working.add(working);
    }
  }

  async #take(id: string, payload: unknown): Promise<void> {
    const answer = await this.#handlers.received({ id, payload });
    if (answer === null || !this.isOpen) return;
    // An acknowledgement that does not arrive makes Slack bring it again.
    this.#client.websocket?.send(JSON.stringify({ envelope_id: id, payload: answer }), () => undefined);
  }
}

function frameOf(data: unknown): Fields | null {
  try {
    return typeof data === 'string' ? fieldsOf(JSON.parse(data)) : null;
  } catch {
    return null;
  }
}

/** Asks where the socket is; an address that is not Slack's is not used. */
async function askForAddress(
  bot: SlackBot,
  url: string | URL,
  init: RequestInit | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetch(url, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(HELLO_MS)]) });
  if (!response.ok) return response;
  const text = await response.text();
  const { status, headers } = response;
  const answer = frameOf(text);
  if (answer?.ok !== true) return new Response(text, { status, headers });
  const address = bot.addressOf(answer.url);
  if (address === null) throw new UnusableToken('Slack gave an address for the socket that is not its own');
  return new Response(JSON.stringify({ ...answer, url: address.href }), { status, headers });
}
