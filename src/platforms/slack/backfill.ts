import { ChatQueues } from '../chat-queues.ts';
import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../fields.ts';
import type { Incoming } from '../platform.ts';
import { sendFailureOf } from './failures.ts';
import { parseMessage } from './parse-message.ts';
import { timeOf } from './places.ts';
import type { Position, Positions } from './positions.ts';
import type { Reception } from './reception.ts';
import type { SlackBot } from './slack-client.ts';
import type { Self } from './text.ts';

const AT_ONCE = 4;
const PAGE = 200;
const MOST_PAGES = 5;
const MOST_NEW_THREADS = 50;
/** Some minutes: what is given up is lost. The channel waits for as long. */
const MORE_TRIES = 40;
const MOST_WAIT_MS = 30_000;

interface BackfillOptions {
  readonly bot: SlackBot;
  readonly self: Self;
  readonly positions: Positions;
  readonly reception: Reception;
  readonly signal: AbortSignal;
}

/** Asks for what was said while nobody was connected: Slack brings again only what is a few minutes old. */
export class Backfill {
  readonly #options: BackfillOptions;
  readonly #questions = new ChatQueues();
  readonly #waiting = new Set<string>();
  #asked = 0;

  constructor(options: BackfillOptions) {
    this.#options = options;
  }

  /** There was a gap. What comes from a channel after this call waits until what came before is asked for. */
  begin(): void {
    const { positions, reception } = this.#options;
    for (const channel of positions.channels) {
      if (this.#waiting.has(channel)) continue;
      this.#waiting.add(channel);
      const done = reception.inOrder(channel, async () => {
        this.#waiting.delete(channel);
        await this.#fill(channel);
      });
      done.catch((thrown: unknown) => this.#warnOfMissing(channel, thrown));
    }
  }

  /** Channel and threads together, in the order in which it was said. */
  async #fill(channel: string): Promise<void> {
    const { positions, reception, signal } = this.#options;
    const known = positions.in(channel);
    const missed: Incoming[] = [];
    for (const position of known) {
      signal.throwIfAborted();
      missed.push(
        ...(position.thread === null ? await this.#sinceIn(position, known) : await this.#repliesOf(position)),
      );
    }
    const inOrder = missed.toSorted((a, b) => Number(a.messageId) - Number(b.messageId));
    for (const message of inOrder) await reception.bringMissed(message);
  }

  /** What was said in a channel, and in the threads that began there meanwhile. */
  async #sinceIn(position: Position, known: readonly Position[]): Promise<readonly Incoming[]> {
    const { channel, time: oldest } = position;
    const messages = await this.#pages('conversations.history', { channel, oldest, inclusive: false }, position);
    const found = messages.flatMap((message) => this.#parse(message, position));
    const isKnown = (thread: string) => known.some((other) => other.thread === thread);
    const threads = messages.flatMap(({ ts, reply_count: replies }) => {
      const thread = timeOf(ts);
      return thread === null || (integerOf(replies) ?? 0) === 0 || isKnown(thread) ? [] : [thread];
    });
    if (threads.length > MOST_NEW_THREADS) this.#warnOfMore(channel);
    for (const thread of threads.slice(0, MOST_NEW_THREADS)) {
      found.push(...(await this.#repliesOf({ ...position, thread })));
    }
    return found;
  }

  async #repliesOf(position: Position): Promise<readonly Incoming[]> {
    const { channel, thread, time: oldest } = position;
    const question = { channel, ts: thread, oldest, inclusive: false };
    const messages = await this.#pages('conversations.replies', question, position);
    // What begins the thread comes each time.
    const replies = messages.filter(({ ts }) => ts !== thread && Number(timeOf(ts) ?? 0) > Number(oldest));
    return replies.flatMap((message) => this.#parse(message, position));
  }

  #parse(message: Fields, { team, channel }: Position): Incoming[] {
    const parsed = parseMessage(message, { channel }, { team, self: this.#options.self });
    return parsed === null ? [] : [parsed];
  }

  async #pages(method: string, question: Fields, position: Position): Promise<Fields[]> {
    const found: Fields[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const args = { ...question, limit: PAGE, ...(cursor === null ? {} : { cursor }) };
      // What one question cannot find out keeps nothing back that another one has.
      const answer: Fields | null = await this.#ask(method, args, position).catch((thrown: unknown) => {
        this.#warnOfMissing(position.channel, thrown);
        return null;
      });
      if (answer === null) return found;
      found.push(...listOf(answer.messages).flatMap((each): Fields[] => [fieldsOf(each) ?? {}]));
      cursor = textOf(fieldsOf(answer.response_metadata)?.next_cursor);
      if (!cursor || answer.has_more !== true) return found;
    }
    this.#warnOfMore(position.channel);
    return found;
  }

  #warnOfMissing(channel: string, thrown: unknown): void {
    const { bot, signal } = this.#options;
    if (signal.aborted) return;
    const error = sendFailureOf(thrown, bot.redact).message;
    bot.runtime.warn('what was said in a channel while Slack was away may be missing', { channel, error });
  }

  #warnOfMore(channel: string): void {
    const { runtime } = this.#options.bot;
    runtime.warn('more was said in a channel while Slack was away than is asked for', { channel });
  }

  /** Null where nothing can be asked any more. Waits as long as Slack wants; gives up after some other failures. */
  async #ask(method: string, args: Fields, position: Position): Promise<Fields | null> {
    const { bot, signal, positions } = this.#options;
    for (let tries = 0; ; ) {
      signal.throwIfAborted();
      try {
        return await this.#questions.run(String(this.#asked++ % AT_ONCE), () => bot.call(method, args, signal));
      } catch (thrown) {
        const { kind, retryAfterMs, message } = sendFailureOf(thrown, bot.redact);
        if (kind === 'gone' || message.endsWith('thread_not_found')) {
          positions.forget(position);
          return null;
        }
        if (kind !== 'rate_limited') tries += 1;
        if (retryAfterMs === null || tries > MORE_TRIES) throw thrown;
        const wait = Math.max(retryAfterMs, Math.min(retryAfterMs * tries, MOST_WAIT_MS));
        await pause(bot.runtime, wait, signal);
      }
    }
  }
}
