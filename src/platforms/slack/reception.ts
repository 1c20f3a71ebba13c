import { ChatQueues } from '../chat-queues.ts';
import { pause } from '../deadline.ts';
import type { Inbox, Incoming } from '../platform.ts';
import type { Parsed } from './parsed.ts';
import type { People } from './people.ts';
import type { Positions } from './positions.ts';
import type { SlackBot } from './slack-client.ts';

/** What can be brought to the inbox and is durable then. */
export type Durable = Extract<Parsed, { kind: 'message' | 'command' | 'event' | 'moved' }>;

/** Slack waits three seconds for an acknowledgement; what takes longer than this comes again. */
export const TAKE_MS = 2000;
const MOST_REMEMBERED = 2000;
/** Between two tries at the same message. Its channel waits with it, so it is never long. */
const LEAST_WAIT_MS = 500;
const MOST_WAIT_MS = 10_000;

export interface ReceptionDeps {
  readonly bot: SlackBot;
  readonly inbox: Inbox;
  readonly positions: Positions;
  readonly people: People;
  /** Ends when the platform stops. */
  readonly signal: AbortSignal;
}

/**
 * Brings what people say to the inbox: one at a time per channel, in order. What the inbox cannot take is tried until it
 * can, and what was said behind it waits: Slack itself brings things again three times only.
 */
export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #queues = new ChatQueues();
  /** On their way, by their ids: what comes again meanwhile is the same. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** The inbox has them, and Slack was not told so: they come again for that and for nothing else. */
  readonly #unacknowledged = new Set<string>();
  /** Events have no place in the store where a repetition is known. */
  readonly #events = new Set<string>();

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
  }

  /** Whether the inbox has it in time to be acknowledged. Never rejects; what is late is still on its way. */
  async takeInTime(parsed: Durable): Promise<boolean> {
    const id = idOf(parsed);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    let isLate = false;
    const cancel = this.#deps.bot.runtime.after(TAKE_MS, () => {
      isLate = true;
      resolve(false);
    });
    this.take(parsed).then(
      () => {
        if (isLate) remember(this.#unacknowledged, id);
        resolve(true);
      },
      () => resolve(false),
    );
    return await promise.finally(cancel);
  }

  /** Resolves when the inbox has it; rejects only when the platform is stopped before. */
  take(parsed: Durable): Promise<void> {
    const id = idOf(parsed);
    const underWay = this.#underWay.get(id);
    if (underWay !== undefined) return underWay;
    const work = async (): Promise<void> => {
      if (!this.#unacknowledged.delete(id)) await this.#bring(parsed);
    };
    const done = this.inOrder(channelOf(parsed), work).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, done);
    return done;
  }

  /** Runs what concerns a channel when everything that came from there before is over. */
  inOrder<T>(channel: string, work: () => Promise<T>): Promise<T> {
    return this.#queues.run(channel, work);
  }

  /** Brings what Slack was asked for, for who has waited for the turn of its channel; Slack may bring it as well. */
  async bringMissed(message: Incoming): Promise<void> {
    await this.#bring({ kind: 'message', message });
    remember(this.#unacknowledged, message.id);
  }

  /** Tries until the inbox has it. */
  async #bring(parsed: Durable): Promise<void> {
    const { signal, bot } = this.#deps;
    for (let wait = LEAST_WAIT_MS; ; wait = Math.min(wait * 2, MOST_WAIT_MS)) {
      signal.throwIfAborted();
      try {
        return await this.#hand(parsed);
      } catch (thrown) {
        bot.runtime.warn('a message was not taken and will be brought again', { error: bot.redact(String(thrown)) });
        await pause(bot.runtime, wait * (0.5 + bot.runtime.random() / 2), signal);
      }
    }
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    await this.#queues.settle();
  }

  async #hand(parsed: Durable): Promise<void> {
    const { inbox } = this.#deps;
    if (parsed.kind === 'command') return await this.#receive(parsed.message);
    if (parsed.kind === 'message') return await this.#receiveAt(parsed.message);
    if (this.#events.has(parsed.id)) return;
    if (parsed.kind === 'moved') await inbox.moved(parsed.from, parsed.to);
    else await inbox.happened(parsed.event);
    remember(this.#events, parsed.id);
  }

  async #receive(message: Incoming): Promise<void> {
    const { inbox, people, signal } = this.#deps;
    await inbox.receive({ ...message, from: await people.named(message.from, signal) });
  }

  async #receiveAt(message: Incoming): Promise<void> {
    await this.#receive(message);
    if (!message.edited) this.#deps.positions.reach(message.place, message.messageId);
  }
}

function idOf(parsed: Durable): string {
  return parsed.kind === 'message' || parsed.kind === 'command' ? parsed.message.id : parsed.id;
}

function channelOf(parsed: Durable): string {
  switch (parsed.kind) {
    case 'message':
    case 'command':
      return parsed.message.place.chat;
    case 'event':
      return parsed.event.place.chat;
    case 'moved':
      return parsed.to;
  }
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size > MOST_REMEMBERED) for (const oldest of ids) return void ids.delete(oldest);
}
