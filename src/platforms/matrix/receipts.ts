import { at, type MatrixApi } from './api.ts';

/** Shows people how far their messages were taken: the newest of each room, one request at a time. */
export class Receipts {
  readonly #api: MatrixApi;
  readonly #signal: AbortSignal;
  readonly #isAllowed: () => boolean;
  /** What is to be shown next, by room; null while the last one is on its way. */
  readonly #wanted = new Map<string, string | null>();

  /** `isAllowed`: the server minds no further requests now. */
  constructor(api: MatrixApi, signal: AbortSignal, isAllowed: () => boolean) {
    this.#api = api;
    this.#signal = signal;
    this.#isAllowed = isAllowed;
  }

  taken(room: string, eventId: string): void {
    const isBusy = this.#wanted.has(room);
    this.#wanted.set(room, eventId);
    if (!isBusy) void this.#show(room);
  }

  /** Never rejects: a receipt that is not shown is made up for by the next one. */
  async #show(room: string): Promise<void> {
    for (let event = this.#wanted.get(room); event != null; event = this.#wanted.get(room)) {
      this.#wanted.set(room, null);
      if (!this.#isAllowed() || this.#signal.aborted) break;
      const path = at`/_matrix/client/v3/rooms/${room}/receipt/m.read/${event}`;
      await this.#api.call(path, this.#signal, { method: 'POST', json: {} }).catch(() => undefined);
    }
    this.#wanted.delete(room);
  }
}
