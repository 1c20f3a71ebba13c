import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ChatType, InboxMessage, SendTarget } from './api.ts';
import type { LivePlugin } from './live-plugin.ts';
import type { PlatformOffer } from './protocol.ts';

/** One place of a platform. */
interface Place {
  readonly type: ChatType;
  readonly chat: string;
  readonly thread?: string;
}

/** A message as the gateway takes it from every platform. */
export interface PluginIncoming {
  readonly id: string;
  readonly messageId: string;
  readonly place: Place;
  readonly from: { readonly id: string | null; readonly name: string | null; readonly bot: boolean };
  readonly text: string;
  readonly files: readonly never[];
  readonly repliesTo: null;
  readonly addressed: boolean;
  readonly edited: boolean;
  readonly group: null;
  readonly at: number;
}

/** Where a platform's messages go. */
export interface PluginInbox {
  /** Resolves when it is durable, or refused for good; rejects when it has to be brought again. */
  receive(message: PluginIncoming): Promise<void>;
  /** The state has changed. */
  changed(): void;
}

export interface PluginPlatformState {
  readonly phase: 'stopped' | 'connected' | 'degraded';
  readonly problem: string | null;
  readonly lastSuccessAt: number | null;
}

/**
 * A way to reach people that a plugin offers, as the gateway sees it. It stays the same object for as long as the plugin
 * is there, whatever process the plugin is in.
 */
export class PluginPlatform {
  readonly plugin: string;
  readonly name: string;
  readonly #live: LivePlugin;
  readonly #settle: () => Promise<void>;
  #offer: PlatformOffer;
  #inbox: PluginInbox | null = null;
  #lastSuccessAt: number | null = null;

  /** `settle` brings what is started in line with what is wanted. */
  constructor(live: LivePlugin, offer: PlatformOffer, settle: () => Promise<void>) {
    this.plugin = live.name;
    this.name = offer.name;
    this.#live = live;
    this.#offer = offer;
    this.#settle = settle;
  }

  /** It was loaded again, and may be able to do something else. */
  renew(offer: PlatformOffer): void {
    this.#offer = offer;
    this.#inbox?.changed();
  }

  /** Its process is away. */
  died(): void {
    this.#inbox?.changed();
  }

  /** Somebody wants it to listen. */
  get wanted(): boolean {
    return this.#inbox !== null;
  }

  get abilities() {
    const { maxText, markdown } = this.#offer;
    return {
      ...{ maxText, markdown, counts: 'utf16' as const, edit: false, remove: false, typing: false, reactions: false },
      ...{ threads: true, buttons: false, files: { in: false, out: false, maxBytes: 0 }, editEveryMs: 0 },
    };
  }

  get state(): PluginPlatformState {
    const { process, problem } = this.#live;
    const phase = process === null ? 'degraded' : 'connected';
    return { phase: this.wanted ? phase : 'stopped', problem, lastSuccessAt: this.#lastSuccessAt };
  }

  /** Listens from now on, also in processes that are started later. */
  async start(inbox: PluginInbox): Promise<void> {
    this.#inbox = inbox;
    await this.#settle();
  }

  async stop(): Promise<void> {
    this.#inbox = null;
    await this.#settle();
  }

  /** Throws while the plugin's process is away: it may be tried again. */
  async send(place: Place, { text }: { readonly text: string }, signal: AbortSignal): Promise<{ messageId: string }> {
    const target: SendTarget = { chat_id: place.chat, chat_type: place.type, thread_id: place.thread ?? null };
    const sent = await this.#live.call({ what: 'send', name: this.name, target, text }, { signal });
    this.#lastSuccessAt = Date.now();
    return { messageId: typeof sent === 'string' ? sent : '' };
  }

  /** Hands over a message that the plugin brought. Throws `bad_input`, and what the gateway throws. */
  async receive(message: InboxMessage): Promise<void> {
    if (this.#inbox === null) throw new MoiraiError('bad_input', `nobody listens to the platform ${this.name} now`);
    const incoming = incomingFrom(this.name, message);
    await this.#inbox.receive(incoming);
    this.#lastSuccessAt = incoming.at;
  }
}

const CHAT_TYPES: readonly unknown[] = ['dm', 'group', 'channel', 'thread'];

/** What a plugin gave, with nothing left open. */
function incomingFrom(platform: string, given: InboxMessage): PluginIncoming {
  const { chat_id, user_id, message_id, text, chat_type = 'dm', thread_id = null, user_name = null } = given;
  for (const [key, value] of Object.entries({ chat_id, user_id, message_id })) {
    if (typeof value !== 'string' || value === '') throw unfit(platform, `${key} is a text, and not empty`);
  }
  for (const [key, value] of Object.entries({ text, thread_id: thread_id ?? '', user_name: user_name ?? '' })) {
    if (typeof value !== 'string') throw unfit(platform, `${key} is a text`);
  }
  if (!CHAT_TYPES.includes(chat_type)) throw unfit(platform, `chat_type is one of ${CHAT_TYPES.join(', ')}`);
  return {
    ...{ id: `${chat_id}:${message_id}`, messageId: message_id, text },
    place: { type: chat_type, chat: chat_id, ...(thread_id === null ? {} : { thread: thread_id }) },
    from: { id: user_id, name: user_name, bot: false },
    addressed: given.addressed ?? chat_type === 'dm',
    ...{ files: [], repliesTo: null, edited: false, group: null, at: Date.now() },
  };
}

function unfit(platform: string, fault: string): MoiraiError {
  return new MoiraiError('bad_input', `a message of ${platform}: ${fault}`);
}
