import WebSocket, { type RawData } from 'ws';
import { type Fields, fieldsOf, integerOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { GatewayClosed } from './qq-error.ts';

/** What the numbers in `op` mean. */
export const OP = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalidSession: 9,
  hello: 10,
  heartbeatAck: 11,
  httpAck: 12,
  validation: 13,
} as const;

export interface SocketOptions {
  readonly url: string;
  readonly runtime: Pick<PlatformRuntime, 'after' | 'random'>;
  /** What the server is told to have: a number below which the inbox has everything. */
  readonly acknowledged: () => number | null;
  /** Every frame but those that keep the connection alive. Throws to close it. */
  readonly onFrame: (frame: Fields, send: (frame: object) => void) => void;
}

const HANDSHAKE_MS = 15_000;
/** The server says hello at once; one that does not is none. */
const HELLO_MS = 30_000;
const LARGEST_FRAME = 16 * 1024 * 1024;
const LEAST_INTERVAL_MS = 1000;

/** One connection to the gateway; resolves when the signal has ended it, rejects with why it is over otherwise. */
export async function talkToGateway(options: SocketOptions, signal: AbortSignal): Promise<void> {
  const socket = new GatewaySocket(options);
  const abort = () => socket.end(null);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    await socket.over;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

class GatewaySocket {
  readonly over: Promise<void>;
  readonly #options: SocketOptions;
  readonly #socket: WebSocket;
  readonly #settle: (thrown: Error | null) => void;
  #cancel: () => void;
  #intervalMs = 0;
  #isAnswered = true;

  constructor(options: SocketOptions) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.over = promise;
    this.#settle = (thrown) => (thrown === null ? resolve() : reject(thrown));
    this.#socket = new WebSocket(options.url, {
      ...{ handshakeTimeout: HANDSHAKE_MS, maxPayload: LARGEST_FRAME, perMessageDeflate: false },
    });
    this.#cancel = options.runtime.after(HELLO_MS, () => this.end(new GatewayClosed('the gateway says nothing')));
    // Also while it closes: an error without a listener would end the process.
    this.#socket.on('error', (error) => this.end(new GatewayClosed(`the gateway cannot be reached: ${nameOf(error)}`)));
    this.#socket.on('close', (code) => this.end(new GatewayClosed(`the gateway has closed (${code})`, code)));
    this.#socket.on('message', (data, isBinary) => this.#hear(data, isBinary));
  }

  /** Lets go of the connection without a word, so that its session can be gone on with. */
  end(why: Error | null): void {
    this.#cancel();
    this.#settle(why);
    this.#socket.terminate();
  }

  #hear(data: RawData, isBinary: boolean): void {
    const frame = isBinary ? null : frameOf(data);
    if (frame === null) return;
    try {
      if (frame.op === OP.heartbeat) this.#beat();
      else if (frame.op === OP.heartbeatAck) this.#isAnswered = true;
      else {
        if (frame.op === OP.hello) this.#hello(frame);
        this.#options.onFrame(frame, (reply) => this.#send(reply));
      }
    } catch (thrown) {
      this.end(thrown instanceof Error ? thrown : new GatewayClosed(String(thrown)));
    }
  }

  #hello(frame: Fields): void {
    const interval = integerOf(fieldsOf(frame.d)?.heartbeat_interval);
    if (interval === null) throw new GatewayClosed('the gateway says no interval for heartbeats');
    this.#intervalMs = Math.max(LEAST_INTERVAL_MS, interval);
    // Not all at once, after the server has come back.
    this.#next(this.#intervalMs * this.#options.runtime.random());
  }

  #next(ms: number): void {
    this.#cancel();
    this.#cancel = this.#options.runtime.after(ms, () => {
      if (!this.#isAnswered) return this.end(new GatewayClosed('the gateway does not answer'));
      this.#isAnswered = false;
      this.#beat();
      this.#next(this.#intervalMs);
    });
  }

  #beat(): void {
    this.#send({ op: OP.heartbeat, d: this.#options.acknowledged() });
  }

  #send(frame: object): void {
    // What is sent while it closes is of no use any more.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame), () => undefined);
  }
}

/** Only codes: messages of network errors quote addresses. */
function nameOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}

function frameOf(data: RawData): Fields | null {
  try {
    return fieldsOf(JSON.parse(String(data)));
  } catch {
    return null;
  }
}
