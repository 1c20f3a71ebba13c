import { Discord } from '../../../src/platforms/discord/platform.ts';
import type { Place } from '../../../src/platforms/platform.ts';
import { DiscordFake } from '../../fakes/discord.ts';
import { readDiscord } from '../../fakes/discord-markdown.ts';
import { attachmentOf } from '../../fakes/discord-routes.ts';
import { type FakeMessage, GUILD, type Json } from '../../fakes/discord-state.ts';
import {
  type Happening,
  type KeptState,
  type Shown,
  testRuntime,
  type UserMessage,
  until,
  type Where,
  type World,
} from '../contract/scene.ts';

export const CHANNEL = '200000000000003001';
export const FORUM = '200000000000003002';
export const POST = '200000000000003003';
const [FIRST_PERSON, FIRST_DM] = [100_000_000_000_042_000n, 300_000_000_000_042_000n];

/** A platform at a fake, and what it warned of. */
export function discordAt(fake: DiscordFake, speed = 100, state: KeptState = new Map()) {
  const runtime = testRuntime('discord', speed, state);
  const platform = new Discord({ token: fake.token, apiRoot: fake.url, runtime });
  return { platform, warnings: runtime.warnings, state };
}

export function person(n = 0): Json {
  const id = String(FIRST_PERSON + BigInt(n));
  return { id, username: `ada${n}`, global_name: `Ada ${n}`, discriminator: '0', bot: false };
}

export function dmOf(n = 0): string {
  return String(FIRST_DM + BigInt(n));
}

/** Discord and the people there: direct chats, a channel, and a forum with a post. */
export class DiscordWorld implements World {
  readonly fake: DiscordFake;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  #last: Json = {};

  private constructor(fake: DiscordFake) {
    this.fake = fake;
    this.settings = { token: fake.token, api_root: fake.url };
    this.secrets = [fake.token];
    furnish(fake);
  }

  static async open(): Promise<DiscordWorld> {
    return new DiscordWorld(await DiscordFake.start());
  }

  place(where: Where, who = 0): Place {
    if (where === 'dm') return { type: 'dm', chat: dmOf(who) };
    if (where === 'group') return { type: 'channel', chat: CHANNEL, scope: GUILD };
    return { type: 'thread', chat: FORUM, scope: GUILD, thread: POST };
  }

  async say({ text, where = 'dm', person: who = 0, file, repliesTo }: UserMessage): Promise<string> {
    // What was said before the bot was ever there nobody tells it.
    await until(() => this.fake.gateway.beginnings.length > 0, 'somebody who listens', 30_000);
    const channel = this.#channel(where, who);
    const answered = this.fake.historyOf(channel).find(({ id }) => id === repliesTo);
    const message = this.fake.say(channel, person(who), {
      content: text,
      attachments: file === undefined ? [] : [attachmentOf(this.fake, channel, file.name, file.bytes, file.mime)],
      ...(answered === undefined
        ? {}
        : { type: 19, message_reference: { message_id: answered.id }, referenced_message: answered }),
    });
    this.#last = { ...message, ...(where === 'dm' ? {} : { guild_id: GUILD }) };
    return message.id;
  }

  push(payload: Json): void {
    this.fake.gateway.push(payload);
  }

  shown(): readonly Shown[] {
    const all = [...this.fake.messages.values()].flat();
    const ours = all.filter(({ author, flags }) => (author as Json).id === this.fake.self.id && flags !== 128);
    return ours.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)).map((message) => this.#shownOf(message));
  }

  /** The server asks for a heartbeat, which says up to where the client has everything. */
  unacknowledged(): number {
    this.fake.gateway.order(1);
    const [session] = [...this.fake.gateway.sessions.values()].slice(-1);
    const open = session?.log.filter(({ s, t }) => t === 'MESSAGE_CREATE' && s > session.acknowledged);
    return open?.length ?? 0;
  }

  async change(messageId: string, text: string): Promise<void> {
    const message = [...this.fake.messages.values()].flat().find(({ id }) => id === messageId);
    if (message === undefined) throw new TypeError('nobody said that');
    Object.assign(message, { content: text, edited_timestamp: new Date().toISOString() });
    this.fake.gateway.dispatch('MESSAGE_UPDATE', { ...message });
  }

  async echo(text: string): Promise<void> {
    this.fake.say(dmOf(), this.fake.self, { content: text });
  }

  async bringAgain(): Promise<void> {
    this.fake.gateway.dispatch('MESSAGE_CREATE', this.#last);
  }

  async press(messageId: string, data: string, who = 0): Promise<string | null> {
    const message = [...this.fake.messages.values()].flat().find(({ id }) => id === messageId);
    if (message === undefined) throw new TypeError('there is no such message');
    const { interaction } = this.fake.interact(message.channel_id, person(who), {
      ...{ type: 3, message },
      data: { custom_id: data, component_type: 2 },
    });
    await until(() => interaction.shown !== null, 'the answer to the press');
    return interaction.shown;
  }

  typed(): number {
    return this.fake.typings;
  }

  reactions(messageId: string): readonly string[] {
    return this.fake.reactions.get(messageId) ?? [];
  }

  limitRate(ms: number): void {
    const headers = {
      ...{
        'retry-after': String(ms / 1000),
        'x-ratelimit-scope': 'user',
        'x-ratelimit-bucket': 'bucket-messages-POST',
      },
      ...{ 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': String(ms / 1000) },
    };
    const body = { message: 'You are being rate limited.', retry_after: ms / 1000, global: false };
    this.fake.failNext('POST /messages', { status: 429, body, headers });
  }

  stumble(): void {
    this.fake.failNext('POST /messages', { status: 502, html: true });
  }

  cut(): void {
    this.fake.gateway.cut();
  }

  invalidate(): void {
    this.fake.gateway.sessions.clear();
  }

  revoke(): void {
    this.fake.revoked = true;
  }

  loseAnswer(): void {
    this.fake.failNext('POST /messages', 'lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  async happen(what: Happening, messageId: string): Promise<void> {
    const { gateway, guild } = this.fake;
    const about = { channel_id: CHANNEL, guild_id: GUILD };
    if (what === 'added') gateway.dispatch('GUILD_CREATE', { ...this.fake.guildWithChannels(), ...justJoined(guild) });
    if (what === 'removed') gateway.dispatch('GUILD_DELETE', { id: GUILD });
    if (what === 'deleted') gateway.dispatch('MESSAGE_DELETE', { id: messageId, ...about });
    if (what === 'joined') gateway.dispatch('GUILD_MEMBER_ADD', { guild_id: GUILD, user: person(7), nick: null });
    if (what === 'reaction') {
      const user = person();
      const emoji = { id: null, name: '👍' };
      const whose = { user_id: user.id, member: { user, nick: null } };
      gateway.dispatch('MESSAGE_REACTION_ADD', { ...about, ...whose, message_id: messageId, emoji });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake.close();
  }

  #channel(where: Where, who: number): string {
    const { chat, thread } = this.place(where, who);
    if (!this.fake.channels.has(thread ?? chat)) {
      this.fake.channels.set(chat, { id: chat, type: 1, recipients: [person(who)] });
    }
    return thread ?? chat;
  }

  #shownOf({ id, channel_id, content, message_reference, attachments, components }: FakeMessage): Shown {
    const channel = this.fake.channels.get(channel_id);
    const isThread = channel?.type === 11;
    const buttons = (components as { components: { label: string }[] }[]).flatMap((row) => row.components);
    const files = (attachments as { filename: string; url: string }[]).map(({ filename, url }) => ({
      name: filename,
      bytes: this.fake.files.get(new URL(url).pathname) ?? new Uint8Array(),
    }));
    return {
      messageId: id,
      chat: isThread ? String(channel.parent_id) : channel_id,
      text: readDiscord(content),
      thread: isThread ? channel_id : null,
      repliesTo: (message_reference as { message_id: string } | undefined)?.message_id ?? null,
      files,
      buttons: buttons.map(({ label }) => label),
    };
  }
}

function justJoined(guild: Json): Json {
  return { ...guild, joined_at: new Date().toISOString() };
}

/** A server with a channel, a forum and a post, and the first direct chats. */
export function furnish(fake: DiscordFake): void {
  fake.guild.system_channel_id = CHANNEL;
  const tags = [
    { id: '200000000000003010', name: 'Bug', moderated: false },
    { id: '200000000000003011', name: 'Question', moderated: false },
  ];
  const state = { archived: false, locked: false, auto_archive_duration: 4320 };
  const common = { guild_id: GUILD, last_message_id: null };
  fake.channels.set(CHANNEL, { ...common, id: CHANNEL, type: 0, name: 'general' });
  fake.channels.set(FORUM, { ...common, id: FORUM, type: 15, name: 'help', flags: 0, available_tags: tags });
  const post = { id: POST, type: 11, name: 'A question', parent_id: FORUM, owner_id: person(0).id };
  fake.channels.set(POST, { ...common, ...post, thread_metadata: state });
  for (let n = 0; n < 3; n += 1) fake.channels.set(dmOf(n), { id: dmOf(n), type: 1, recipients: [person(n)] });
}
