import { fileURLToPath } from 'node:url';
import type { Place } from '../../../src/platforms/platform.ts';
import type { BotApiFake } from '../../fakes/bot-api.ts';
import type { Forgery, Happening, Shown, UserMessage, Where, World } from '../contract/scene.ts';
import { until } from '../contract/scene.ts';
import { TelegramWorld } from '../telegram/world.ts';

const SECRET = 'knock-knock';
/** The adapters of the tests are installed here. */
export const PACKAGES = fileURLToPath(new URL('../../../', import.meta.url));

/** Telegram through its adapter of the Chat SDK, which names chats and messages in its own way. */
export class TelegramAdapterWorld implements World {
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  readonly #inner: TelegramWorld;
  readonly #fake: BotApiFake;
  #door: string | null = null;

  private constructor(inner: TelegramWorld) {
    this.#inner = inner;
    this.#fake = inner.fake;
    const { token, url } = inner.fake;
    // Who sets up the bot tells Telegram the address: the adapter does not.
    inner.fake.webhook = { url: 'https://gateway.test/platforms/chat-sdk', secret: SECRET };
    this.settings = {
      adapter: '@chat-adapter/telegram',
      options: { botToken: token, apiUrl: url, mode: 'webhook', secretToken: SECRET },
      packages_from: PACKAGES,
    };
    this.secrets = inner.secrets;
  }

  static async open(): Promise<TelegramAdapterWorld> {
    return new TelegramAdapterWorld(await TelegramWorld.open('webhook'));
  }

  get fake(): BotApiFake {
    return this.#fake;
  }

  place(where: Where, person = 0): Place {
    return this.#inner.place(where, person);
  }

  async say(said: UserMessage): Promise<string> {
    const { repliesTo, where = 'dm', person = 0 } = said;
    const inner = { ...said, ...(repliesTo === undefined ? {} : { repliesTo: numberOf(repliesTo) }) };
    return `${this.place(where, person).chat}:${await this.#inner.say(inner)}`;
  }

  push(payload: Record<string, unknown>): void {
    this.#inner.push(payload);
  }

  shown(): readonly Shown[] {
    return this.#inner.shown().map((shown) => ({
      ...shown,
      messageId: `${shown.chat}:${shown.messageId}`,
      repliesTo: shown.repliesTo === null ? null : `${shown.chat}:${shown.repliesTo}`,
    }));
  }

  unacknowledged(): number {
    return this.#inner.unacknowledged();
  }

  change(messageId: string, text: string): Promise<void> {
    return this.#inner.change(numberOf(messageId), text);
  }

  echo(text: string): Promise<void> {
    return this.#inner.echo(text);
  }

  bringAgain(): Promise<void> {
    return this.#inner.bringAgain();
  }

  /** The adapter lets nobody answer a press but itself: what is to be shown is a message. */
  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const before = this.shown().length;
    await this.#inner.press(numberOf(messageId), `chat:${JSON.stringify({ a: data })}`, person);
    await until(() => this.shown().length > before, 'what is shown to who pressed');
    return this.shown()[before]?.text ?? null;
  }

  typed(): number {
    return this.#inner.typed();
  }

  reactions(messageId: string): readonly string[] {
    return this.#inner.reactions(numberOf(messageId));
  }

  limitRate(ms: number): void {
    const retry_after = ms / 1000;
    const description = `Too Many Requests: retry after ${retry_after}`;
    this.#fake.failNext('sendRichMessage', { code: 429, description, parameters: { retry_after } });
  }

  stumble(): void {
    this.#fake.failNext('sendRichMessage', { html: 502 });
  }

  loseAnswer(): void {
    this.#fake.failNext('sendRichMessage', 'lost');
  }

  cut(): void {
    this.#inner.cut();
  }

  onTaken(callback: (() => void) | null): void {
    this.#inner.onTaken(callback);
  }

  bringTo(url: string | null): void {
    this.#door = url;
    this.#inner.bringTo(url);
  }

  /** Brings one update, whatever waits; returns the status of the answer. */
  async post(update: Record<string, unknown>): Promise<number> {
    const headers = { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': SECRET };
    return (await fetch(this.#door ?? '', { method: 'POST', headers, body: JSON.stringify(update) })).status;
  }

  forge(how: Forgery): Promise<number> {
    return this.#inner.forge(how);
  }

  happen(what: Happening, messageId: string): Promise<void> {
    return this.#inner.happen(what, numberOf(messageId));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#inner[Symbol.asyncDispose]();
  }
}

function numberOf(messageId: string): string {
  return messageId.split(':').at(-1) ?? '';
}
