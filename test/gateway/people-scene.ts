import { BotApiFake } from '../fakes/bot-api.ts';
import { Scene } from './scene.ts';

/** Where something is said: in a direct chat by its person's id, in the group, or in a topic of the forum. */
export type Spot = 'dm' | 'group' | 'topic';

const GROUP = -100;
const FORUM = -200;

/** People on Telegram and a gateway in this process between them and a scripted agent. */
export class PeopleScene {
  readonly bot: BotApiFake;
  readonly gateway: Scene;

  private constructor(bot: BotApiFake, gateway: Scene) {
    this.bot = bot;
    this.gateway = gateway;
  }

  /** The people with these ids are paired. Nobody has to be addressed by name. */
  static async open(paired: readonly number[], settings: Record<string, unknown> = {}): Promise<PeopleScene> {
    const bot = await BotApiFake.start();
    const telegram = { token: bot.token, api_root: bot.url, require_mention: false };
    const gateway = await Scene.open({
      platforms: { telegram },
      memory: { provider: 'none' },
      display: { streaming: false },
      ...settings,
    });
    const scene = new PeopleScene(bot, gateway);
    for (const id of paired) await scene.pair(id);
    return scene;
  }

  async close(): Promise<void> {
    // A test that failed may have left a question behind, for which the gateway would wait.
    const { approvals } = this.gateway.gateway;
    const operator = { name: 'cli', person: null, admin: true };
    for (const { id } of await approvals.waiting()) await approvals.answerById(id, 'deny', operator);
    await this.gateway.close();
    await this.bot.close();
  }

  get runner() {
    return this.gateway.runner;
  }

  async pair(id: number): Promise<void> {
    const person = { platform: 'telegram', userId: String(id), name: `Person ${id}`, requestId: `request-${id}` };
    await this.gateway.store.write('admit', person);
  }

  async promote(id: number): Promise<void> {
    await this.gateway.store.write('setPairedAdmin', { platform: 'telegram', userId: String(id), admin: true });
  }

  async revoke(id: number): Promise<void> {
    await this.gateway.store.write('revokePairing', { platform: 'telegram', userId: String(id) });
  }

  say(from: number, text: string, spot: Spot = 'dm', fields: Record<string, unknown> = {}): void {
    const person = { id: from, is_bot: false, first_name: `Person ${from}` };
    this.bot.say({ text, from, ...placeOf(from, spot), fields: { from: person, ...fields } });
  }

  /** Presses a button under a message of a chat. */
  press(from: number, data: string, spot: Spot = 'dm'): string {
    const { chat, type } = placeOf(from, spot);
    const id = `press-${from}-${this.bot.callbackAnswers.size}-${data}`;
    const person = { id: from, is_bot: false, first_name: `Person ${from}` };
    const message = { message_id: 1, date: 1, chat: { id: chat, type } };
    this.bot.push({ callback_query: { id, data, chat_instance: '1', from: person, message } });
    return id;
  }

  /** What people see in the direct chat of a person, the group or the forum. */
  seen(chat: number | 'group' | 'topic'): string[] {
    const id = chat === 'group' ? GROUP : chat === 'topic' ? FORUM : chat;
    return [...this.bot.messages.values()].filter((message) => message.chat === id).map(({ text }) => text);
  }

  /** The data of the last button with this label that anybody was shown in a chat. */
  button(chat: number | 'group' | 'topic', label: string): string | null {
    const id = chat === 'group' ? GROUP : chat === 'topic' ? FORUM : chat;
    for (const { payload } of [...this.bot.messages.values()].filter((message) => message.chat === id).reverse()) {
      const keyboard = payload.reply_markup as { inline_keyboard?: { text: string; callback_data: string }[][] } | null;
      const found = (keyboard?.inline_keyboard ?? []).flat().find(({ text }) => text === label);
      if (found !== undefined) return found.callback_data;
    }
    return null;
  }

  /** What the agent was given to do, by whom. */
  tasks(): string[] {
    return this.runner.tasks.map(({ userId, text }) => `${userId}: ${text}`);
  }

  until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
    return this.gateway.until(what, holds);
  }

  async sees(chat: number | 'group' | 'topic', words: string): Promise<string> {
    const find = (): string | undefined => this.seen(chat).find((text) => text.includes(words));
    await this.until(`${words} in ${chat}`, () => find() !== undefined);
    return find() ?? '';
  }

  /** A press is answered. */
  async answer(press: string): Promise<string | null> {
    await this.until(`${press} is answered`, () => this.bot.callbackAnswers.has(press));
    return this.bot.callbackAnswers.get(press) ?? null;
  }
}

function placeOf(from: number, spot: Spot) {
  if (spot === 'dm') return { chat: from, type: 'private' } as const;
  if (spot === 'group') return { chat: GROUP, type: 'supergroup' } as const;
  return { chat: FORUM, type: 'supergroup', topic: 5 } as const;
}
