import type { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import { textOf } from '../fields.ts';
import type { DingtalkApi } from './api.ts';
import { ConnectionLost } from './failures.ts';
import { answerPing, type Frame, readFrame, SUBSCRIPTIONS } from './frames.ts';
import type { Reception } from './reception.ts';
import { StreamSocket } from './socket.ts';

const OPEN_MS = 30_000;
/** A connection that is over sooner is opened again with more patience each time. */
const SHORT_MS = 10_000;
/** What the old connection is kept for, after the next one is open: the answers to what came over it. */
const RETIRE_MS = 10_000;

interface StreamOptions {
  readonly api: DingtalkApi;
  readonly connection: Connection;
  readonly reception: Reception;
}

/** Keeps a connection open until the signal ends it or there is no use in trying. */
export class MessageStream {
  readonly #options: StreamOptions;
  readonly #sockets = new Set<StreamSocket>();

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { connection } = this.#options;
    const { promise: stopped, resolve: stop } = Promise.withResolvers<'stopped'>();
    signal.addEventListener('abort', () => stop('stopped'), { once: true });
    let last: StreamSocket | null = null;
    while (!signal.aborted) {
      const { promise: left, resolve: leave } = Promise.withResolvers<'left'>();
      const socket = await connection.keepTrying(() => this.#open(signal, () => leave('left')), signal);
      if (socket === null) break;
      connection.succeeded();
      if (last !== null) this.#retire(last);
      const end = await Promise.race([socket.ended, left, stopped]);
      if (end === 'stopped') break;
      last = end === 'left' ? socket : null;
      await this.#rest(socket, end, signal);
    }
  }

  /** Closes every connection; what was answered is on its way. */
  async close(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => socket.close()));
  }

  async #rest(socket: StreamSocket, end: ConnectionLost | 'left', signal: AbortSignal): Promise<void> {
    const { api, connection } = this.#options;
    const wasShort = api.app.runtime.now() - socket.openedAt < SHORT_MS;
    if (!wasShort) connection.taken();
    if (end !== 'left') await connection.failed(end, signal);
    if (wasShort) await connection.untaken(signal);
  }

  async #open(signal: AbortSignal, leave: () => void): Promise<StreamSocket> {
    const { app } = this.#options.api;
    const { clientId, clientSecret, runtime, addresses } = app;
    const json = { clientId, clientSecret, subscriptions: SUBSCRIPTIONS, ua: 'moirai', localIp: '127.0.0.1' };
    const url = addresses.api('/v1.0/gateway/connections/open');
    const { endpoint, ticket } = await this.#options.api.ask(url, { method: 'POST', json }, signal, OPEN_MS);
    const address = addresses.socket(textOf(endpoint, 2048) ?? '');
    if (address === null) throw new ConnectionLost('the server names a connection that is not at DingTalk');
    address.searchParams.set('ticket', textOf(ticket, 4096) ?? '');
    const onFrame = (text: string, socket: StreamSocket): void => this.#onFrame(text, socket, leave);
    const open = (deadline: AbortSignal) => StreamSocket.open({ url: address, runtime, onFrame }, deadline);
    const socket = await withDeadline(signal, OPEN_MS, open);
    this.#sockets.add(socket);
    void socket.ended.then(() => this.#sockets.delete(socket));
    return socket;
  }

  #onFrame(text: string, socket: StreamSocket, leave: () => void): void {
    const { api, reception, connection } = this.#options;
    connection.alive();
    try {
      const frame = readFrame(text);
      if (frame === null) return;
      if (frame.type === 'SYSTEM') this.#obey(frame, socket, leave);
      else reception.take(frame, (answer) => socket.send(answer));
    } catch (thrown) {
      // Nobody above would hear of it: it would end the process.
      api.app.runtime.warn('what came from DingTalk could not be read', { error: api.redact(String(thrown)) });
    }
    if (!reception.isFull) return;
    socket.pause();
    reception.onRoom(() => socket.resume());
  }

  #obey(frame: Frame, socket: StreamSocket, leave: () => void): void {
    if (frame.topic === 'ping') socket.send(answerPing(frame));
    if (frame.topic === 'disconnect') leave();
  }

  /** The server closes it by itself, mostly. */
  #retire(socket: StreamSocket): void {
    const { runtime } = this.#options.api.app;
    const cancel = runtime.after(RETIRE_MS, () => void socket.close());
    void socket.ended.then(cancel);
  }
}
