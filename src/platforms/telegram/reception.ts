import type { Inbox } from '../platform.ts';
import { type Bot, withDeadline } from './bot-api.ts';
import type { Parsed } from './parse.ts';

const ANSWER_MS = 10_000;
const GRACE_MS = 1000;
/** What Telegram shows to who pressed a button. */
const MOST_ANSWER = 200;

/** Brings what people say to the inbox: one at a time per chat, in order. */
export class Reception {
  readonly #bot: Bot;
  readonly #inbox: Inbox;
  readonly #lanes = new Map<string, Promise<unknown>>();
  readonly #answers = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(bot: Bot, inbox: Inbox) {
    this.#bot = bot;
    this.#inbox = inbox;
  }

  /** Resolves when the inbox has it; rejects when it has to be brought again. */
  async take(parsed: Parsed): Promise<void> {
    const lane = laneOf(parsed);
    const taken = (this.#lanes.get(lane) ?? Promise.resolve()).then(() => this.#hand(parsed));
    const settled = taken.catch(() => undefined);
    this.#lanes.set(lane, settled);
    try {
      await taken;
    } catch (thrown) {
      this.#bot.runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
      throw thrown;
    } finally {
      if (this.#lanes.get(lane) === settled) this.#lanes.delete(lane);
    }
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    await Promise.all(this.#lanes.values());
    const enough = this.#bot.runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#answers);
    enough();
  }

  async #hand(parsed: Parsed): Promise<void> {
    if (parsed.kind === 'moved') return await this.#inbox.moved(parsed.from, parsed.to);
    if (parsed.kind === 'message') return await this.#inbox.receive(parsed.message);
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
      await withDeadline(this.#stopped.signal, ANSWER_MS, (deadline) =>
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
  if (parsed.kind === 'moved') return parsed.to;
  return (parsed.kind === 'message' ? parsed.message : parsed.press).place.chat;
}
