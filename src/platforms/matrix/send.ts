import { createHash } from 'node:crypto';
import { type Fields, listOf } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type OutgoingFile, type Place, SendFailure } from '../platform.ts';
import { type ApiCall, at, type MatrixApi } from './api.ts';
import { changeContent, type EventContent, fileContent, fileName, type Standing, textContent } from './compose.ts';
import { isRefusal, sendFailureOf } from './failures.ts';
import { eventIdOf } from './ids.ts';
import type { KnownEvents } from './known-events.ts';
import { uploadFile } from './media.ts';
import type { Rooms } from './rooms.ts';

/** Servers limit an account, whatever rooms it writes to. */
const ACCOUNT = 'account';

export interface SendingDeps {
  readonly api: MatrixApi;
  readonly rooms: Rooms;
  readonly known: KnownEvents;
}

/** Calls that concern a room. */
export class Sending {
  readonly #deps: SendingDeps;
  readonly #gate: FloodGate;

  constructor(deps: SendingDeps) {
    this.#deps = deps;
    this.#gate = new FloodGate(deps.api.runtime);
  }

  /** Whether the server minds no requests now that could as well be left out. */
  get isAllowed(): boolean {
    return this.#gate.closedFor(ACCOUNT) <= 0;
  }

  /**
   * Sends a message, which may become several; returns the id of the last. The same key makes the same messages, so that
   * all of it can be repeated. Throws `SendFailure`.
   */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const room = await this.#roomFor(place, signal);
    const key = message.key ?? this.newKey();
    const { text, files = [] } = message;
    const standing = this.#standing(room, place, message);
    const hasWords = text.trim() !== '' || files.length === 0;
    let last = hasWords ? await this.#post(room, key, textContent(text, standing), signal) : null;
    for (const [i, file] of files.entries()) {
      last = await this.#sendFile(room, `${key}:file${i + 1}`, file, standing, last, signal);
    }
    return last ?? '';
  }

  /** Changes the words of a message of ours. Throws `SendFailure`. */
  async edit(place: Place, messageId: string, { text, key }: Outgoing, signal: AbortSignal): Promise<void> {
    const room = await this.#roomFor(place, signal);
    // A change of what is not there any more is taken by the server and shown to nobody.
    if (this.#deps.known.isRedacted(room, messageId)) throw new SendFailure('the message was removed', null);
    const name = key === undefined ? this.newKey() : `edit:${messageId}:${key}`;
    await this.#post(room, name, changeContent(text, messageId), signal);
  }

  /** Takes an event of ours back; one that is gone counts as taken back. Throws `SendFailure`. */
  async redact(place: Place, eventId: string, signal: AbortSignal): Promise<void> {
    const room = await this.roomOf(place);
    const path = at`/_matrix/client/v3/rooms/${room}/redact/${eventId}/${transactionOf(`redact:${room}:${eventId}`)}`;
    try {
      await this.call(path, signal, { method: 'PUT', json: {} });
    } catch (thrown) {
      if (!(thrown instanceof SendFailure && thrown.kind === 'gone')) throw thrown;
    }
  }

  /** Throws `SendFailure`. */
  async call(path: string, signal: AbortSignal, call: ApiCall): Promise<Fields> {
    this.#gate.check(ACCOUNT);
    try {
      return await this.#deps.api.call(path, signal, call);
    } catch (thrown) {
      throw this.#gate.note(ACCOUNT, sendFailureOf(thrown, this.#deps.api.redact));
    }
  }

  /** Where the room goes on, if it does so elsewhere. */
  async roomOf({ chat }: Place): Promise<string> {
    return await this.#deps.rooms.newestOf(chat);
  }

  newKey(): string {
    const { runtime } = this.#deps.api;
    return `${runtime.now()}:${runtime.random()}`;
  }

  async #roomFor(place: Place, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const room = await this.roomOf(place);
    if (!(await this.#deps.rooms.isEncrypted(room))) return room;
    throw new SendFailure('the room is encrypted, and nothing is sent there in the clear', null, 'forbidden');
  }

  #standing(room: string, { thread }: Place, message: Outgoing): Standing {
    const answered = this.#deps.known.peek(room, message.replyTo ?? null);
    return { thread, message, answered: answered?.sender ?? null };
  }

  async #post(room: string, key: string, content: EventContent, signal: AbortSignal): Promise<string> {
    const path = at`/_matrix/client/v3/rooms/${room}/send/m.room.message/${transactionOf(key)}`;
    this.#gate.check(ACCOUNT);
    try {
      const sent = await this.#deps.api.call(path, signal, { method: 'PUT', json: content });
      return eventIdOf(sent.event_id) ?? '';
    } catch (thrown) {
      const failure = this.#gate.note(ACCOUNT, sendFailureOf(thrown, this.#deps.api.redact));
      if (!isRefusal(thrown, 'M_FORBIDDEN') || (await this.#isThere(room, signal))) throw failure;
      throw new SendFailure(`the agent is not in the room: ${failure.message}`, null, 'gone');
    }
  }

  /** Whether we are in a room that refused us; true also where the server does not say. */
  async #isThere(room: string, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#deps.api.lookUp('/_matrix/client/v3/joined_rooms', signal);
    return answer === null || listOf(answer.joined_rooms).includes(room);
  }

  /** What is there before the file stays, so what cannot be sent at all is named instead. */
  async #sendFile(
    room: string,
    key: string,
    file: OutgoingFile,
    standing: Standing,
    last: string | null,
    signal: AbortSignal,
  ): Promise<string> {
    try {
      const url = await uploadFile(this.#deps.api, file, signal);
      return await this.#post(room, key, fileContent(file, url, standing), signal);
    } catch (thrown) {
      const failure = sendFailureOf(thrown, this.#deps.api.redact);
      if (last === null || failure.retryAfterMs !== null || failure.kind === 'gone') throw failure;
      this.#deps.api.runtime.warn('a file was not sent', { error: failure.message });
      const words = textContent(`(${fileName(file)} could not be sent)`, standing);
      return this.#post(room, `${key}:missing`, words, signal);
    }
  }
}

/** The server takes the same transaction of the same device once. */
function transactionOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 40);
}
