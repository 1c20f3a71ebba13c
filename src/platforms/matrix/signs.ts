import { ChatQueues } from '../chat-queues.ts';
import { fieldsOf, listOf } from '../fields.ts';
import { type Place, type ReactionSign, SendFailure } from '../platform.ts';
import { Recent } from '../recent.ts';
import { at, type MatrixApi } from './api.ts';
import { eventIdOf } from './ids.ts';
import type { Sending } from './send.ts';

const SIGNS = { seen: '👀', done: '✅', failed: '❌' } as const satisfies Record<ReactionSign, string>;
const MOST_MESSAGES = 2000;

interface OwnSign {
  readonly event: string;
  readonly sign: string;
}

/** Our signs at messages of people. Each is an event of its own, which is taken back to take the sign away. */
export class Signs {
  readonly #api: MatrixApi;
  readonly #sending: Sending;
  readonly #own = new Recent<readonly OwnSign[]>(MOST_MESSAGES);
  readonly #queues = new ChatQueues();

  constructor(api: MatrixApi, sending: Sending) {
    this.#api = api;
    this.#sending = sending;
  }

  /** Leaves this sign of ours at the message, and no other. Throws `SendFailure`. */
  put(place: Place, messageId: string, wanted: ReactionSign | null, self: string, signal: AbortSignal): Promise<void> {
    return this.#queues.run(`${place.chat} ${messageId}`, async () => {
      const room = await this.#sending.roomOf(place);
      const key = `${room} ${messageId}`;
      const before = this.#own.get(key) ?? (await this.#find(room, messageId, self, signal));
      const sign = wanted === null ? null : SIGNS[wanted];
      const kept = before.filter((own) => own.sign === sign);
      const added = sign === null || kept.length > 0 ? null : await this.#add(room, messageId, sign, signal);
      this.#own.set(key, added === null ? before : [...before, added]);
      for (const own of before) if (own.sign !== sign) await this.#sending.redact(place, own.event, signal);
      this.#own.set(key, added === null ? kept : [...kept, added]);
    });
  }

  async #add(room: string, messageId: string, sign: string, signal: AbortSignal): Promise<OwnSign> {
    const path = at`/_matrix/client/v3/rooms/${room}/send/m.reaction/${this.#sending.newKey()}`;
    const relation = { rel_type: 'm.annotation', event_id: messageId, key: sign };
    const sent = await this.#sending.call(path, signal, { method: 'PUT', json: { 'm.relates_to': relation } });
    const event = eventIdOf(sent.event_id);
    if (event === null) throw new SendFailure('the homeserver gave the sign no id', null);
    return { event, sign };
  }

  /** Those that a process before this one has put there. */
  async #find(room: string, messageId: string, self: string, signal: AbortSignal): Promise<OwnSign[]> {
    const path = at`/_matrix/client/v1/rooms/${room}/relations/${messageId}/m.annotation/m.reaction`;
    const answer = await this.#api.lookUp(path, signal, { limit: '100' });
    return listOf(answer?.chunk).flatMap((each): OwnSign[] => {
      const reaction = fieldsOf(each);
      const event = eventIdOf(reaction?.event_id);
      const sign = fieldsOf(fieldsOf(reaction?.content)?.['m.relates_to'])?.key;
      return event === null || reaction?.sender !== self || typeof sign !== 'string' ? [] : [{ event, sign }];
    });
  }
}
