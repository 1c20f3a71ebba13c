import type { DiscordGateway } from './discord-gateway.ts';

export type Json = Record<string, unknown>;

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Json;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly at: number;
}

export interface FakeMessage extends Json {
  readonly id: string;
  readonly channel_id: string;
  content: string;
}

export interface FakeInteraction {
  readonly token: string;
  readonly channel: string;
  /** Kinds of callbacks, in order. */
  readonly callbacks: number[];
  acknowledgedAt: number | null;
  /** What only the person sees. */
  shown: string | null;
  /** The message that was deferred, or has taken its place. */
  original: FakeMessage | null;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** An answer of Discord that says no. */
export function refusal(status: number, code: number, message: string, more: Json = {}): Answer {
  return { status, body: { message, code, ...more } };
}

const EPOCH = 1_420_070_400_000;
export const GUILD = '200000000000003000';
/** The role that the server has made for the bot. */
export const OWN_ROLE = '200000000000003020';

export function ok(body?: unknown): Answer {
  return body === undefined ? { status: 204 } : { status: 200, body };
}

/** What Discord knows: channels, messages, who reacted, what is pressed. */
export abstract class DiscordState {
  abstract readonly gateway: DiscordGateway;
  readonly self = { id: '100000000000000777', username: 'moirai', global_name: 'Moirai', bot: true };
  readonly application = { id: '100000000000000778', flags: (1 << 19) | (1 << 15) };
  readonly channels = new Map<string, Json>();
  readonly messages = new Map<string, FakeMessage[]>();
  readonly files = new Map<string, Uint8Array>();
  readonly reactions = new Map<string, string[]>();
  readonly interactions = new Map<string, FakeInteraction>();
  readonly guild: Json = {
    ...{ id: GUILD, name: 'Guild', joined_at: '2020-01-01T00:00:00.000Z' },
    roles: [
      { id: GUILD, name: '@everyone' },
      { id: '200000000000003021', name: 'Other bot', managed: true, tags: { bot_id: '100000000000000999' } },
      { id: OWN_ROLE, name: 'Moirai', managed: true, tags: { bot_id: '100000000000000777' } },
    ],
  };
  onTaken: (() => void) | null = null;
  typings = 0;
  readonly #nonces = new Map<string, FakeMessage>();
  #ids = 0n;
  #clock = 0;

  /** The next id: those of later messages are larger, whatever the clock does. */
  nextId(): string {
    this.#clock = Math.max(this.#clock, Date.now());
    this.#ids += 1n;
    return String((BigInt(this.#clock - EPOCH) << 22n) + this.#ids);
  }

  historyOf(channel: string): FakeMessage[] {
    const known = this.messages.get(channel) ?? [];
    this.messages.set(channel, known);
    return known;
  }

  /** A message as the server makes it: kept, and told to everybody who listens. */
  say(channel: string, author: Json, fields: Json): FakeMessage {
    const guild = this.channels.get(channel)?.guild_id;
    const message: FakeMessage = {
      ...{ id: this.nextId(), channel_id: channel, author, content: '', type: 0, flags: 0, tts: false, pinned: false },
      ...{ timestamp: new Date().toISOString(), edited_timestamp: null, mention_everyone: false },
      ...{ mentions: [], mention_roles: [], attachments: [], embeds: [], components: [] },
      ...fields,
    };
    this.historyOf(channel).push(message);
    const thread = this.channels.get(channel);
    if (thread !== undefined) thread.last_message_id = message.id;
    this.gateway.dispatch('MESSAGE_CREATE', guild === undefined ? message : { ...message, guild_id: guild });
    return message;
  }

  /** Our own message by its nonce, if it was sent before. */
  knownBy(channel: string, nonce: unknown): FakeMessage | null {
    return typeof nonce === 'string' ? (this.#nonces.get(`${channel}:${nonce}`) ?? null) : null;
  }

  noteNonce(message: FakeMessage, nonce: unknown): void {
    if (typeof nonce === 'string') this.#nonces.set(`${message.channel_id}:${nonce}`, message);
  }

  /** An interaction that a person begins. */
  interact(channel: string, user: Json, fields: Json): { id: string; interaction: FakeInteraction } {
    const [id, token] = [this.nextId(), `aW50ZXJhY3Rpb24-${this.nextId()}`];
    const interaction: FakeInteraction = {
      ...{ token, channel, callbacks: [], acknowledgedAt: null, shown: null, original: null },
    };
    this.interactions.set(id, interaction);
    const place = this.channels.get(channel) ?? { id: channel, type: 1 };
    const guild = place.guild_id;
    const who = guild === undefined ? { user } : { guild_id: guild, member: { user, nick: null } };
    const about = { application_id: this.application.id, channel_id: channel, channel: place, version: 1 };
    this.gateway.dispatch('INTERACTION_CREATE', { id, token, ...about, ...who, ...fields });
    return { id, interaction };
  }

  guildWithChannels(): Json {
    const all = [...this.channels.values()].filter((channel) => channel.guild_id === GUILD);
    const isThread = ({ type }: Json) => [10, 11, 12].includes(type as number);
    return {
      ...this.guild,
      channels: all.filter((channel) => !isThread(channel)),
      threads: all.filter((channel) => isThread(channel) && !(channel.thread_metadata as Json).archived),
    };
  }
}
