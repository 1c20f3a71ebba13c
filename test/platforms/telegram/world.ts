import type { Place } from '../../../src/platforms/platform.ts';
import { Telegram } from '../../../src/platforms/telegram/platform.ts';
import { BotApiFake, type ChatMessage } from '../../fakes/bot-api.ts';
import { type Shown, testRuntime, type UserMessage, until, type Where, type World } from '../contract/scene.ts';

const FIRST_PERSON = 42;
const GROUPS = {
  group: { chat: -100, type: 'group' },
  thread: { chat: -1001, type: 'supergroup', topic: 5 },
} as const;
const SECRET = 'knock-knock';
const DELIVER_MS = 10;

/** A platform at a fake, and what it warned of. */
export function telegramAt(fake: BotApiFake, webhook: { url: string; secret: string } | null = null, speed = 100) {
  const runtime = testRuntime('telegram', speed);
  const { token, url: apiRoot } = fake;
  const platform = new Telegram({ token, apiRoot, webhook, runtime });
  return { platform, warnings: runtime.warnings };
}

/** Telegram and the people there; it is asked for updates, or brings them. */
export class TelegramWorld implements World {
  readonly fake: BotApiFake;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  readonly #mode: 'polling' | 'webhook';
  readonly #pump: NodeJS.Timeout | null;
  #door: string | null = null;
  #delivering = false;
  #last: Record<string, unknown> = {};

  private constructor(fake: BotApiFake, mode: 'polling' | 'webhook') {
    this.fake = fake;
    this.#mode = mode;
    const { token, url } = fake;
    const webhook = { mode, webhook_url: 'https://gateway.test/platforms/telegram', webhook_secret: SECRET };
    this.settings = { token, api_root: url, ...(mode === 'webhook' ? webhook : {}) };
    this.secrets = [token.slice(token.indexOf(':') + 1), SECRET];
    this.#pump = mode === 'webhook' ? setInterval(() => void this.#deliver(), DELIVER_MS) : null;
  }

  static async open(mode: 'polling' | 'webhook'): Promise<TelegramWorld> {
    return new TelegramWorld(await BotApiFake.start(), mode);
  }

  place(where: Where, person = 0): Place {
    if (where === 'dm') return { type: 'dm', chat: String(FIRST_PERSON + person) };
    if (where === 'group') return { type: 'group', chat: String(GROUPS.group.chat) };
    return { type: 'thread', chat: String(GROUPS.thread.chat), thread: String(GROUPS.thread.topic) };
  }

  async say({ text, where = 'dm', person = 0, file, repliesTo }: UserMessage): Promise<string> {
    const from = FIRST_PERSON + person;
    const chat = where === 'dm' ? ({ chat: from, type: 'private' } as const) : GROUPS[where];
    const words = file === undefined ? { text } : { caption: text, document: this.#document(file) };
    const message = this.fake.message({ ...chat, from, fields: { ...words, ...this.#quote(chat.chat, repliesTo) } });
    this.push({ message });
    return String(message.message_id);
  }

  push({ update_id: _, ...update }: Record<string, unknown>): void {
    this.#last = update;
    this.fake.push(update);
  }

  shown(): readonly Shown[] {
    return [...this.fake.messages.values()].map(shownOf);
  }

  unacknowledged(): number {
    return this.fake.pending.length;
  }

  async change(messageId: string, text: string): Promise<void> {
    const message = this.fake.message({ text });
    this.push({ edited_message: { ...message, message_id: Number(messageId), edit_date: message.date } });
  }

  async echo(text: string): Promise<void> {
    this.push({ message: this.fake.message({ text, fields: { from: this.fake.self } }) });
  }

  async bringAgain(): Promise<void> {
    this.fake.push(this.#last);
  }

  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const { fake } = this;
    const id = `press-${messageId}-${data}`;
    const chat = [...fake.messages.values()].find((message) => message.messageId === Number(messageId))?.chat;
    const message = { ...fake.message({ chat: chat ?? FIRST_PERSON }), message_id: Number(messageId), from: fake.self };
    const from = { id: FIRST_PERSON + person, is_bot: false, first_name: 'Ada' };
    this.push({ callback_query: { id, from, message, data } });
    await until(() => fake.callbackAnswers.has(id), 'the answer to the press');
    return fake.callbackAnswers.get(id) ?? null;
  }

  typed(): number {
    return this.fake.callsOf('sendChatAction').length;
  }

  reactions(messageId: string): readonly string[] {
    return this.fake.reactions.get(`${FIRST_PERSON}:${messageId}`) ?? [];
  }

  limitRate(ms: number): void {
    const retry_after = ms / 1000;
    const description = `Too Many Requests: retry after ${retry_after}`;
    this.fake.failNext('sendMessage', { code: 429, description, parameters: { retry_after } });
  }

  stumble(): void {
    this.fake.failNext('sendMessage', { html: 502 });
  }

  cut(): void {
    this.fake.cut();
  }

  revoke(): void {
    this.fake.revoked = true;
  }

  loseAnswer(): void {
    this.fake.failNext('sendMessage', 'lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  bringTo(url: string | null): void {
    this.#door = url;
  }

  async forge(how: 'unsigned' | 'forged' | 'stale'): Promise<number> {
    const headers = how === 'unsigned' ? {} : { 'x-telegram-bot-api-secret-token': 'not the secret' };
    const body = JSON.stringify({ update_id: 1, message: this.fake.message({ text: 'forged' }) });
    return (await fetch(this.#door ?? '', { method: 'POST', headers, body })).status;
  }

  async happen(what: 'added' | 'removed' | 'deleted' | 'reaction' | 'joined', messageId: string): Promise<void> {
    const chat = { id: GROUPS.group.chat, type: 'group', title: 'Group' };
    const user = { id: 43, is_bot: false, first_name: 'Bob' };
    const [before, after] = what === 'removed' ? ['member', 'kicked'] : ['left', 'member'];
    const members = (of: object) => ({
      ...{ chat, from: user, date: 1_700_000_000 },
      old_chat_member: { status: before, user: of },
      new_chat_member: { status: after, user: of },
    });
    if (what === 'added' || what === 'removed') this.push({ my_chat_member: members(this.fake.self) });
    if (what === 'joined') this.push({ chat_member: members(user) });
    if (what === 'reaction') {
      const new_reaction = [{ type: 'emoji', emoji: '👍' }];
      this.push({ message_reaction: { chat, user, message_id: Number(messageId), old_reaction: [], new_reaction } });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#pump !== null) clearInterval(this.#pump);
    await this.fake.close();
  }

  /** Brings everything until it is taken, as Telegram does; the address that was registered stands for the real one. */
  async #deliver(): Promise<void> {
    if (this.#mode !== 'webhook' || this.#delivering || this.fake.webhook === null || this.#door === null) return;
    this.#delivering = true;
    await this.fake.deliver(this.#door).catch(() => undefined);
    this.#delivering = false;
  }

  #document({ bytes, name, mime }: NonNullable<UserMessage['file']>) {
    return { ...this.fake.keepFile(bytes), file_name: name, mime_type: mime };
  }

  #quote(chat: number, repliesTo: string | undefined) {
    if (repliesTo === undefined) return {};
    const answered = this.fake.messages.get(`${chat}:${repliesTo}`);
    const from = answered === undefined ? { id: FIRST_PERSON, is_bot: false, first_name: 'Ada' } : this.fake.self;
    const about = { message_id: Number(repliesTo), date: 1_700_000_000, chat: { id: chat, type: 'private' } };
    return { reply_to_message: { ...about, from, text: answered?.text } };
  }
}

function shownOf({ messageId, chat, text, thread, payload, files }: ChatMessage): Shown {
  const { reply_parameters, reply_markup } = payload as {
    reply_parameters?: { message_id: number };
    reply_markup?: { inline_keyboard: { text: string }[][] };
  };
  return {
    messageId: String(messageId),
    chat: String(chat),
    text,
    thread: thread === null ? null : String(thread),
    repliesTo: reply_parameters === undefined ? null : String(reply_parameters.message_id),
    files,
    buttons: (reply_markup?.inline_keyboard ?? []).flat().map((button) => button.text),
  };
}
