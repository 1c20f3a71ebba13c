import { ChatQueues } from '../chat-queues.ts';
import { pause } from '../deadline.ts';
import type { Inbox, Incoming, PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';
import type { Answers } from './answers.ts';
import { waitsForThem } from './failures.ts';
import type { Ledger } from './ledger.ts';
import { type DeliveryStatus, type Parsed, WINDOW_MS } from './parse.ts';
import { isByTemplate, wholeKey } from './send.ts';
import { Waiting } from './waiting.ts';

const MOST_TAKEN = 5000;
/** What is not durable by then is answered with a failure, so that Meta brings it again. */
const ACKNOWLEDGE_MS = 5000;

interface ReceptionDeps {
  readonly inbox: Inbox;
  readonly answers: Answers;
  readonly ledger: Ledger;
  readonly runtime: PlatformRuntime;
}

/** Brings what the server says to the inbox: one at a time per chat, in order, chats beside each other. */
export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #queues = new ChatQueues();
  readonly #waiting: Waiting;
  /** Known to be taken. */
  readonly #taken = new Recent<true>(MOST_TAKEN);
  /** What is brought again while the inbox still has it waits for the same. */
  readonly #underway = new Map<string, Promise<void>>();
  /** Brought in requests that were not acknowledged: where it is taken by now, that is all that has to be said. */
  readonly #unheard = new Recent<true>(MOST_TAKEN);
  readonly #stopped = new AbortController();

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
    this.#waiting = new Waiting(() => deps.runtime.now());
  }

  /** Whether the inbox has all of it, in time; if not, all of it has to be brought again. */
  async take(items: readonly Parsed[]): Promise<boolean> {
    const lanes = [...Map.groupBy(items, laneOf)];
    const all = Promise.allSettled(lanes.map(([lane, own]) => this.#takeLane(lane, own)));
    const isTaken = await this.#inTime(all.then((done) => done.every(({ status }) => status === 'fulfilled')));
    if (!isTaken) for (const [lane, own] of lanes) this.#unheard.set(nameOf(lane, own), true);
    return isTaken;
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    this.#stopped.abort();
    await this.#queues.settle();
    await this.#deps.answers.settle();
  }

  async #inTime(isTaken: Promise<boolean>): Promise<boolean> {
    const answered = new AbortController();
    const late = pause(this.#deps.runtime, ACKNOWLEDGE_MS, answered.signal).then(() => false);
    const outcome = await Promise.race([isTaken, late]);
    answered.abort();
    return outcome;
  }

  async #takeLane(lane: string, items: readonly Parsed[]): Promise<void> {
    const name = nameOf(lane, items);
    const known = this.#underway.get(name);
    if (known !== undefined) return await known;
    if (this.#unheard.delete(name) && items.every(({ id }) => this.#taken.has(id))) return;
    const taking = this.#queues.run(lane, () => this.#takeInOrder(lane, items));
    this.#underway.set(name, taking);
    try {
      await taking;
    } catch (thrown) {
      const { runtime } = this.#deps;
      if (!(thrown instanceof NotYet)) {
        runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
      }
      throw thrown;
    } finally {
      this.#underway.delete(name);
    }
  }

  async #takeInOrder(lane: string, items: readonly Parsed[]): Promise<void> {
    for (const [index, item] of items.entries()) {
      try {
        if (!this.#taken.has(item.id) && this.#waiting.isBlocked(lane, item.id)) throw new NotYet();
        await this.#hand(item);
      } catch (thrown) {
        this.#waiting.add(
          lane,
          items.slice(index).map(({ id }) => id),
        );
        throw thrown;
      }
      this.#taken.set(item.id, true);
      this.#waiting.remove(lane, item.id);
    }
  }

  async #hand(item: Parsed): Promise<void> {
    if (item.kind === 'message') return await this.#handMessage(item.message);
    if (item.kind === 'status') return await this.#handStatus(item.status);
    // The inbox knows messages that come again; presses and signs would happen twice.
    if (this.#taken.has(item.id)) return;
    const { inbox, answers, ledger } = this.#deps;
    if (item.kind === 'event') return await inbox.happened(item.event);
    const { press, at } = item;
    const messageId = press.id.slice(press.id.indexOf(':') + 1);
    ledger.heard(press.place.chat, messageId, at + WINDOW_MS);
    const shown = await inbox.press(press);
    if (shown !== null && shown !== '') answers.answerPress(press, messageId, at, shown);
  }

  async #handMessage(message: Incoming): Promise<void> {
    const { inbox, answers, ledger } = this.#deps;
    const { messageId, place, text, at, repliesTo } = message;
    ledger.heard(place.chat, messageId, at + WINDOW_MS);
    const quote = repliesTo === null ? null : { ...repliesTo, text: ledger.wordsOf(repliesTo.messageId) };
    await inbox.receive({ ...message, repliesTo: quote });
    ledger.said(messageId, text);
    answers.markRead(message);
  }

  async #handStatus({ key, messageId, place, failure }: DeliveryStatus): Promise<void> {
    const { inbox, ledger } = this.#deps;
    if (key === null) return;
    if (failure === null) return ledger.noteArrival(key, messageId);
    ledger.noteFailure(key, messageId);
    const whole = wholeKey(key);
    await ledger.settled(whole, this.#stopped.signal);
    if (this.#stopped.signal.aborted) throw new NotYet();
    const expired = waitsForThem(failure.code, isByTemplate(key));
    await inbox.happened({ kind: 'message_failed', place, key: whole, reason: failure.reason, expired });
  }
}

function nameOf(lane: string, items: readonly Parsed[]): string {
  return `${lane} ${items.map(({ id }) => id).join(' ')}`;
}

/** It has to be brought again, and nothing is wrong. */
class NotYet extends Error {}

/** Statuses are about one message each, and wait for nothing that was said. */
function laneOf(parsed: Parsed): string {
  switch (parsed.kind) {
    case 'message':
      return parsed.message.place.chat;
    case 'press':
      return parsed.press.place.chat;
    case 'event':
      return parsed.event.place.chat;
    case 'status':
      return `status ${parsed.status.messageId}`;
  }
}
