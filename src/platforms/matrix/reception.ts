import { ChatQueues } from '../chat-queues.ts';
import type { KeptCursor } from '../cursor.ts';
import { pause } from '../deadline.ts';
import type { Fields } from '../fields.ts';
import { LowWater } from '../low-water.ts';
import type { Inbox } from '../platform.ts';
import { ApiError, type MatrixApi } from './api.ts';
import { isAcceptance, isBeginning } from './comings.ts';
import { GapReader } from './gap.ts';
import { eventIdOf } from './ids.ts';
import type { KnownEvents } from './known-events.ts';
import type { Marks } from './marks.ts';
import type { Membership } from './membership.ts';
import { isWorthAsking, type Parsed, parseEvent } from './parse.ts';
import type { Names } from './parse-content.ts';
import type { Departure, RoomPiece, SyncBatch } from './parse-sync.ts';
import type { Coming, PendingComings } from './pending-comings.ts';
import type { Receipts } from './receipts.ts';
import { waitToRetry } from './retry.ts';
import type { Rooms } from './rooms.ts';

/** What is read ahead of what the inbox has: so many events, in so many syncs. */
const MOST_EVENTS = 500;
const MOST_BATCHES = 50;
/** How far clocks of servers may be apart, and more. */
const CLOCKS_MS = 86_400_000;
/** So long everything behind waits for coming into a room. */
const COMING_MS = 10_000;

export interface ReceptionDeps {
  readonly self: Names;
  readonly inbox: Inbox;
  readonly api: MatrixApi;
  readonly rooms: Rooms;
  readonly known: KnownEvents;
  readonly marks: Marks;
  readonly receipts: Receipts;
  readonly membership: Membership;
  readonly pending: PendingComings;
  readonly cursor: KeptCursor;
  readonly signal: AbortSignal;
}

/**
 * Brings what people say to the inbox: one at a time per room, in order, until it is taken. Rooms do not wait for each
 * other; the position that is kept waits for all of them.
 */
export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #queues = new ChatQueues();
  readonly #open = new LowWater<string>();
  #events = 0;
  #freed: () => void = () => undefined;

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
  }

  /** Resolves when there is room for another batch, or all is over. */
  async hasRoom(): Promise<void> {
    const { signal } = this.#deps;
    while (!signal.aborted && (this.#events >= MOST_EVENTS || this.#open.size >= MOST_BATCHES)) {
      await new Promise<void>((resolve) => {
        this.#freed = () => {
          signal.removeEventListener('abort', this.#freed);
          resolve();
        };
        signal.addEventListener('abort', this.#freed);
      });
    }
  }

  /** What is there when the account is connected for the first time: it is history. Resolves when that is kept. */
  async begin({ rooms }: SyncBatch): Promise<void> {
    const { marks } = this.#deps;
    for (const { room, events } of rooms) {
      const last = eventIdOf(events.at(-1)?.event_id);
      if (last !== null) marks.moveTo(room, last);
    }
    await marks.flush();
  }

  /**
   * Begins to take what was brought behind a position; null where the server had forgotten it, and brings what is newest
   * of every room. The position behind it is kept once all of it is taken, and all before it.
   */
  take(batch: SyncBatch, since: string | null): void {
    const { rooms, cursor } = this.#deps;
    if (batch.direct !== null) rooms.listDirect(batch.direct);
    const done = this.#open.begin(batch.next);
    const work = [
      ...batch.invites.map((invite) => this.#run(invite.room, 1, () => this.#come({ room: invite.room, invite }))),
      ...batch.rooms.map((piece) => this.#run(piece.room, piece.events.length, () => this.#takePiece(piece, since))),
      ...batch.departures.map((left) => this.#run(left.room, 1, () => this.#takeDeparture(left))),
    ];
    void Promise.all(work).then(
      () => {
        if (done() && this.#open.mark !== null) cursor.moveTo(this.#open.mark);
        this.#freed();
      },
      // It was stopped: what is not taken comes again to the next one that starts.
      () => undefined,
    );
  }

  /** Goes on coming into the rooms that the last process was about to come into. */
  async resume(): Promise<void> {
    const { pending } = this.#deps;
    const left = await this.#retryUntilTaken(() => pending.read(), 'which rooms the agent was about to come into');
    for (const coming of left) {
      // It ends early only when all is over.
      this.#queues.run(`coming ${coming.room}`, () => this.#finishComing(coming)).catch(() => undefined);
    }
  }

  /** Lets the inbox finish what it has. */
  settle(): Promise<void> {
    return this.#queues.settle();
  }

  async #run(room: string, events: number, work: () => Promise<void>): Promise<void> {
    this.#events += events;
    try {
      await this.#queues.run(room, work);
    } finally {
      this.#events -= events;
      this.#freed();
    }
  }

  async #takePiece(piece: RoomPiece, since: string | null): Promise<void> {
    const { self, rooms, marks, api, signal } = this.#deps;
    const { room, events, behind } = piece;
    await this.#retryUntilTaken(() => rooms.learn(piece), 'what a room is');
    const mark = await this.#retryUntilTaken(() => marks.read(room), 'how far a room is taken');
    const last = mark?.event ?? null;
    // What was said before is not for us.
    const came = events.findLastIndex((event) => isBeginning(event, self.userId));
    const known = last === null ? -1 : events.findIndex((event) => event.event_id === last);
    if (behind !== null && came < 0 && known < 0) {
      const after = mark === null ? 0 : mark.at - CLOCKS_MS;
      // Where we came in by an invite, it may lie before the position.
      const to = events.some((event) => isAcceptance(event, self.userId)) ? null : since;
      const gap = { room, from: behind, to, last, after, self: self.userId };
      for await (const page of new GapReader(gap, api, signal).pages()) await this.#takeEvents(room, page);
    }
    // Behind a position, what comes twice was brought twice: the inbox knows it by its id.
    await this.#takeEvents(room, events.slice(Math.max(came, since === null ? known + 1 : 0, 0)));
  }

  async #takeEvents(room: string, events: readonly Fields[]): Promise<void> {
    for (const event of events) await this.#retryUntilTaken(() => this.#takeEvent(room, event), 'an event');
  }

  async #takeEvent(room: string, event: Fields): Promise<void> {
    const { self, rooms, known, marks, receipts, signal } = this.#deps;
    await rooms.learnEvent(room, event);
    const parsed = await this.#parse(room, event);
    if (parsed !== null) await this.#hand(room, parsed);
    known.note(room, event);
    const id = eventIdOf(event.event_id);
    if (id === null) return;
    marks.moveTo(room, id);
    if (parsed?.kind === 'message' && event.sender !== self.userId && !signal.aborted) receipts.taken(room, id);
  }

  async #parse(room: string, event: Fields): Promise<Parsed | null> {
    const { self, rooms, known, signal } = this.#deps;
    const context = { self, room, direct: false, roomName: null };
    const lookups = { nameOf: (id: string) => rooms.nameOf(id), known: (id: string | null) => known.peek(room, id) };
    // Nothing is asked about what means nothing to us.
    if (!isWorthAsking(event, self.userId)) return null;
    await known.fetchReferences(room, event, signal);
    const { direct, name } = await rooms.factsOf(room, signal);
    signal.throwIfAborted();
    return parseEvent(event, { ...context, ...lookups, direct, roomName: name });
  }

  async #hand(room: string, parsed: Parsed): Promise<void> {
    const { inbox, membership, rooms } = this.#deps;
    switch (parsed.kind) {
      case 'message':
        // Who writes in the clear where everybody else's words are hidden is not answered in the clear.
        if (await rooms.isEncrypted(room)) return membership.refuseEncrypted(room);
        return inbox.receive(parsed.message);
      case 'event':
        return inbox.happened(parsed.event);
      case 'moved':
        return this.#come({ room: parsed.to, from: room, via: parsed.via });
      case 'encrypted':
        await rooms.askEncrypted(room, this.#deps.signal);
        return membership.refuseEncrypted(room);
    }
  }

  /**
   * Comes into a room. Servers of others have a part in it, and may be away for as long as they like: after a moment nothing
   * waits for it any more, and it is kept for the next process; in the end it is given up.
   */
  async #come(coming: Coming): Promise<void> {
    const { api, pending, signal } = this.#deps;
    const decided = new AbortController();
    const whole = this.#queues.run(`coming ${coming.room}`, () => this.#finishComing(coming, decided));
    await Promise.race([whole, pause(api.runtime, COMING_MS, AbortSignal.any([signal, decided.signal]))]);
    signal.throwIfAborted();
    if (!decided.signal.aborted) {
      await this.#retryUntilTaken(() => pending.add(coming), 'that the agent is about to come into a room');
      if (!decided.signal.aborted) return;
    }
    await whole;
    await this.#forgetComing(coming);
  }

  async #finishComing(coming: Coming, decided = new AbortController()): Promise<void> {
    const { inbox } = this.#deps;
    const from = await this.#tryToCome(coming);
    decided.abort();
    if (from !== null) {
      await this.#retryUntilTaken(() => inbox.moved(from, coming.room), 'that a room goes on as another one');
    }
    await this.#forgetComing(coming);
  }

  /** The room whose place is taken by the one that we have come into; null where it takes none, or we have not come. */
  async #tryToCome(coming: Coming): Promise<string | null> {
    const { signal, api, membership } = this.#deps;
    const { room } = coming;
    const come = (): Promise<string | null> =>
      'invite' in coming ? membership.answer(coming.invite) : membership.follow(coming.from, room, coming.via);
    try {
      return await api.callUntilAnswered(come, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      api.runtime.warn('coming into a room was given up', { room, error: api.redact(String(thrown)) });
      return null;
    }
  }

  async #forgetComing({ room }: Coming): Promise<void> {
    await this.#retryUntilTaken(() => this.#deps.pending.remove(room), 'that the agent came into a room');
  }

  async #takeDeparture({ room, event }: Departure): Promise<void> {
    const { inbox, rooms } = this.#deps;
    const place = { type: 'group', chat: room } as const;
    const unsaid = { kind: 'removed', place } as const;
    await this.#retryUntilTaken(async () => {
      const parsed = event === null ? null : await this.#parse(room, event);
      await inbox.happened(parsed?.kind === 'event' ? parsed.event : unsaid);
      await rooms.leave(room);
    }, 'that the agent left a room');
  }

  /** Does something until it succeeds. Rejects only when all is over. */
  async #retryUntilTaken<T>(work: () => Promise<T>, what: string): Promise<T> {
    const { signal, api } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (thrown) {
        signal.throwIfAborted();
        api.runtime.warn('something was not taken and will be tried again', {
          what,
          error: api.redact(String(thrown)),
        });
        await waitToRetry(api.runtime, tries, signal, askedWait(thrown));
      }
    }
  }
}

function askedWait(thrown: unknown): number {
  return thrown instanceof ApiError ? (thrown.waitMs ?? 0) : 0;
}
