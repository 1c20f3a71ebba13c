import { type Fields, fieldsOf } from '../fields.ts';
import { Recent } from '../recent.ts';
import { at, type MatrixApi } from './api.ts';
import { type KnownEvent, knowEvent, referencesOf } from './parse.ts';

const MOST = 2000;

/** Events that others refer to: those that came by lately, and those that the server was asked for. */
export class KnownEvents {
  readonly #api: MatrixApi;
  /** Null: the server does not give it. */
  readonly #events = new Recent<KnownEvent | null>(MOST);
  /** Those that were taken back. */
  readonly #redacted = new Recent<true>(MOST);

  constructor(api: MatrixApi) {
    this.#api = api;
  }

  /** One that came by. */
  note(room: string, event: Fields): void {
    const known = knowEvent(event);
    if (known === null) return;
    const { target } = referencesOf(event);
    if (event.type === 'm.room.redaction' && target !== null) this.#redacted.set(`${room} ${target}`, true);
    // What is taken back comes without what it was.
    const isPruned = known.kind !== 'other' && Object.keys(fieldsOf(event.content) ?? {}).length === 0;
    if (!isPruned) this.#events.set(`${room} ${known.id}`, known);
  }

  /** Whether it was seen that an event was taken back. */
  isRedacted(room: string, id: string): boolean {
    return this.#redacted.get(`${room} ${id}`) === true;
  }

  peek(room: string, id: string | null): KnownEvent | null {
    return id === null ? null : (this.#events.get(`${room} ${id}`) ?? null);
  }

  /** Makes known what an event refers to. Ends early only when the signal does. */
  async fetchReferences(room: string, event: Fields, signal: AbortSignal): Promise<void> {
    const { target, answers, thread } = referencesOf(event);
    const changed = await this.#fetch(room, target, signal);
    for (const id of [answers, thread, changed?.about ?? null, changed?.thread ?? null]) {
      await this.#fetch(room, id, signal);
    }
  }

  async #fetch(room: string, id: string | null, signal: AbortSignal): Promise<KnownEvent | null> {
    if (id === null) return null;
    const known = this.#events.get(`${room} ${id}`);
    if (known !== undefined) return known;
    const event = await this.#api.find(at`/_matrix/client/v3/rooms/${room}/event/${id}`, signal);
    const fetched = event === null ? null : knowEvent(event);
    this.#events.set(`${room} ${id}`, fetched);
    return fetched;
  }
}
