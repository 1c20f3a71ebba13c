import type { Inbox } from '../platform.ts';
import { type AnswerTo, answerPrivately } from './answers.ts';
import { sendFailureOf } from './failures.ts';
import type { Parsed } from './parsed.ts';
import { type Reception, TAKE_MS } from './reception.ts';
import type { SlackBot } from './slack-client.ts';

type Pressed = Extract<Parsed, { kind: 'press' }>;
type Commanded = Extract<Parsed, { kind: 'command' }>;
type Opened = Extract<Parsed, { kind: 'opened' }>;

const GRACE_MS = 1000;
const NOT_PRESSED = 'This could not be taken. Press the button again.';
const NOT_COMMANDED = 'This could not be taken. Enter the command again.';

/** What a new thread of the assistant offers to say. */
const PROMPTS = [
  { title: 'What can you do?', message: 'What can you do?' },
  { title: 'What do you know about me?', message: 'What do you know about me?' },
  { title: 'Show me the commands', message: '/help' },
];

/**
 * What people do that Slack brings once only: it is acknowledged within the time that Slack waits, whatever the inbox does
 * meanwhile, and who did it is told what became of it.
 */
export class Interactions {
  readonly #bot: SlackBot;
  readonly #inbox: Inbox;
  readonly #reception: Reception;
  readonly #stopped = new AbortController();
  readonly #working = new Set<Promise<void>>();

  constructor(bot: SlackBot, inbox: Inbox, reception: Reception) {
    this.#bot = bot;
    this.#inbox = inbox;
    this.#reception = reception;
  }

  /** Resolves when it is time to acknowledge. */
  async press({ press, answerTo }: Pressed): Promise<void> {
    const { place, from } = press;
    const to = { url: answerTo, channel: place.chat, thread: place.thread ?? null, user: from.id };
    const pressed = this.#inbox.press(press);
    this.#inBackground(
      pressed.then(
        (shown) => (shown === null ? undefined : this.#answer(to, shown)),
        (thrown: unknown) => this.#failed('a pressed button', thrown, to, NOT_PRESSED),
      ),
    );
    await this.#atMost(TAKE_MS, pressed);
  }

  /** Resolves when it is time to acknowledge. The answer goes where the command was given. */
  async command(commanded: Commanded): Promise<void> {
    const { place, from } = commanded.message;
    const to = { url: commanded.answerTo, channel: place.chat, thread: null, user: from.id };
    const taken = this.#reception.take(commanded);
    this.#inBackground(taken.catch((thrown: unknown) => this.#failed('a command', thrown, to, NOT_COMMANDED)));
    await this.#atMost(TAKE_MS, taken);
  }

  open({ channel, thread }: Opened): void {
    const args = { channel_id: channel, thread_ts: thread, prompts: PROMPTS };
    const shown = this.#bot.call('assistant.threads.setSuggestedPrompts', args, this.#stopped.signal).then(
      () => undefined,
      (thrown: unknown) => {
        const error = sendFailureOf(thrown, this.#bot.redact).message;
        this.#bot.runtime.warn('a thread of the assistant has no prompts', { error });
      },
    );
    this.#inBackground(shown);
  }

  /** Resolves when everybody has been told, or could not be in time. */
  async settle(): Promise<void> {
    const enough = this.#bot.runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#working);
    enough();
  }

  async #failed(what: string, thrown: unknown, to: AnswerTo, words: string): Promise<void> {
    this.#bot.runtime.warn(`${what} was not taken`, { error: this.#bot.redact(String(thrown)) });
    await this.#answer(to, words);
  }

  async #answer(to: AnswerTo, words: string): Promise<void> {
    await answerPrivately(this.#bot, to, words, this.#stopped.signal);
  }

  #inBackground(work: Promise<void>): void {
    const done = work.finally(() => this.#working.delete(done));
    this.#working.add(done);
  }

  async #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#bot.runtime.after(ms, resolve);
    await Promise.race([promise, work.catch(() => undefined)]);
    cancel();
  }
}
