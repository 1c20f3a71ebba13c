import { ChatQueues } from '../chat-queues.ts';
import { withDeadline } from '../deadline.ts';
import type { Inbox } from '../platform.ts';
import type { Bot, CallSignal } from './bot-api.ts';
import type { Parsed } from './parse.ts';

const ANSWER_MS = 10_000;
const GRACE_MS = 1000;
/** What Telegram shows to who pressed a button. */
const MOST_ANSWER = 200;

/** Brings what people say to the inbox: one at a time per chat, in order. */
export class Reception {
  readonly #bot: Bot;
  readonly #inbox: Inbox;
  readonly #queues = new ChatQueues();
  readonly #answers = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(bot: Bot, inbox: Inbox) {
    this.#bot = bot;
    this.#inbox = inbox;
  }

  /** Resolves when the inbox has it; rejects when it has to be brought again. */
  async take(parsed: Parsed): Promise<void> {
    try {
      await this.#queues.run(laneOf(parsed), () => this.#hand(parsed));
    } catch (thrown) {
      this.#bot.runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
      throw thrown;
    }
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    await this.#queues.settle();
    const enough = this.#bot.runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#answers);
    enough();
  }

  async #hand(parsed: Parsed): Promise<void> {
    if (parsed.kind === 'moved') return await this.#inbox.moved(parsed.from, parsed.to);
    if (parsed.kind === 'message') return await this.#inbox.receive(parsed.message);
    if (parsed.kind === 'event') return await this.#inbox.happened(parsed.event);
    const shown = await this.#inbox.press(parsed.press);
    // It is not awaited: the person who pressed sees a clock until it is there, and the press itself is taken.
    const answer = this.#answerPress(parsed.query, shown).finally(() => this.#answers.delete(answer));
    this.#answers.add(answer);
  }

  /** A message could only be sent to another chat than the one it was for. */
  async moved(from: string, to: string): Promise<void> {
    try {
      await this.take({ kind: 'moved', from, to });
    } catch {
      // Logged where it was not taken. The next message that is sent there brings it again.
    }
  }

  async #answerPress(query: string, shown: string | null): Promise<void> {
    const { api, runtime, redact } = this.#bot;
    const text = shown === null ? {} : { text: shown.slice(0, MOST_ANSWER).toWellFormed() };
    try {
      await withDeadline(this.#stopped.signal, ANSWER_MS, (deadline: CallSignal) =>
        api.answerCallbackQuery({ callback_query_id: query, ...text }, deadline),
      );
    } catch (thrown) {
      // Too late, mostly: Telegram takes answers for some seconds only.
      runtime.warn('a pressed button was not answered', { error: redact(String(thrown)) });
    }
  }
}

/** Updates of one lane are taken one after the other. What is said in a chat waits until it is known what the chat was before. */
export function laneOf(parsed: Parsed): string {
  switch (parsed.kind) {
    case 'moved':
      return parsed.to;
    case 'event':
      return parsed.event.place.chat;
    case 'press':
      return parsed.press.place.chat;
    case 'message':
      return parsed.message.place.chat;
  }
}
