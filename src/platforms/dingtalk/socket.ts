import { type RawData, WebSocket } from 'ws';
import type { PlatformRuntime } from '../platform.ts';
import { ConnectionLost } from './failures.ts';

const HANDSHAKE_MS = 15_000;
const PING_MS = 60_000;
/** A connection that says nothing for so many pings is gone, whatever the network thinks. */
const MOST_SILENT_PINGS = 2;
const CLOSE_MS = 2000;
const MOST_FRAME_BYTES = 16 * 1024 * 1024;

interface SocketOptions {
  readonly url: URL;
  readonly runtime: PlatformRuntime;
  readonly onFrame: (text: string, socket: StreamSocket) => void;
}

/** One connection to DingTalk. */
export class StreamSocket {
  /** Resolves when it is open no more, with the reason. */
  readonly ended: Promise<ConnectionLost>;
  readonly openedAt: number;
  readonly #socket: WebSocket;
  readonly #runtime: PlatformRuntime;
  #heard = true;
  #silentPings = 0;
  #cancelPing: () => void = () => undefined;

  private constructor(socket: WebSocket, { runtime, onFrame }: SocketOptions) {
    this.#socket = socket;
    this.#runtime = runtime;
    this.openedAt = runtime.now();
    let reason = 'the connection was cut';
    const { promise, resolve } = Promise.withResolvers<ConnectionLost>();
    this.ended = promise;
    socket.on('error', (error) => (reason = `the connection was cut: ${codeOf(error)}`));
    socket.on('close', (code) => {
      this.#cancelPing();
      resolve(new ConnectionLost(code === 1006 ? reason : `the connection was closed: ${code}`));
    });
    socket.on('pong', () => (this.#heard = true));
    socket.on('message', (data) => {
      this.#heard = true;
      onFrame(textOf(data), this);
    });
    this.#ping();
  }

  /** Resolves when it is open. Throws `ConnectionLost`. */
  static open(options: SocketOptions, signal: AbortSignal): Promise<StreamSocket> {
    const limits = { handshakeTimeout: HANDSHAKE_MS, maxPayload: MOST_FRAME_BYTES, perMessageDeflate: false };
    const socket = new WebSocket(options.url, limits);
    const { promise, resolve, reject } = Promise.withResolvers<StreamSocket>();
    const abort = (): void => {
      socket.terminate();
      reject(new ConnectionLost('the connection was called off'));
    };
    // Without a listener an error would end the process, also one that comes after it was called off.
    socket.on('error', (error) => reject(new ConnectionLost(`the connection was not opened: ${codeOf(error)}`)));
    socket.on('close', () => reject(new ConnectionLost('the connection was closed before it was open')));
    // At once, so that no frame comes before there is somebody to take it.
    socket.on('open', () => resolve(new StreamSocket(socket, options)));
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** What cannot be sent is lost: the server brings again what was not answered. */
  send(text: string): void {
    if (this.isOpen) this.#socket.send(text, () => undefined);
  }

  /** Takes nothing from the network until it is resumed. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves when it is closed; what was sent before is on its way. */
  async close(): Promise<void> {
    this.resume();
    this.#socket.close(1000);
    const cancel = this.#runtime.after(CLOSE_MS, () => this.#socket.terminate());
    await this.ended;
    cancel();
  }

  #ping(): void {
    this.#cancelPing = this.#runtime.after(PING_MS, () => {
      this.#silentPings = this.#heard || this.#socket.isPaused ? 0 : this.#silentPings + 1;
      if (this.#silentPings >= MOST_SILENT_PINGS) {
        this.#socket.terminate();
        return;
      }
      this.#heard = false;
      if (this.isOpen) this.#socket.ping(undefined, undefined, () => undefined);
      this.#ping();
    });
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return (Buffer.isBuffer(data) ? data : Buffer.from(data)).toString('utf8');
}

/** Its code or status, and not its words: those may quote the address, which holds the ticket. */
function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  const [status] = /\b[1-5]\d\d$/.exec(error.message) ?? [];
  return typeof code === 'string' ? code : (status ?? error.name);
}
