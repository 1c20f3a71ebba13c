import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Abilities, Inbox, Incoming, Outgoing, Place, Platform, PlatformState } from '../../platforms/platform.ts';
import type { ExtensionProcess } from '../host/extension-process.ts';
import type { InboxMessage, SendTarget } from './api.ts';
import type { LivePlugin } from './live-plugin.ts';
import { methodOf } from './names.ts';
import type { PlatformOffer } from './offer.ts';

/** The part of the gateway's inbox that a plugin can use. */
export type PluginInbox = Pick<Inbox, 'receive' | 'changed'>;

const STOP_MS = 3000;

/**
 * A way to reach people that a plugin offers, as the gateway sees it. It stays the same object for as long as the plugin
 * is there, whatever process the plugin is in. It is started in one process at a time, for two that poll one account
 * disturb each other.
 */
export class PluginPlatform implements Platform {
  readonly plugin: string;
  readonly name: string;
  readonly #live: LivePlugin;
  #offer: PlatformOffer;
  #inbox: PluginInbox | null = null;
  #started: { readonly process: ExtensionProcess; readonly abort: AbortController } | null = null;
  #lastSuccessAt: number | null = null;

  constructor(live: LivePlugin, offer: PlatformOffer) {
    this.plugin = live.name;
    this.name = offer.name;
    this.#live = live;
    this.#offer = offer;
  }

  /** Its process is away, or was loaded again and may be able to do something else. */
  update(offer: PlatformOffer = this.#offer): void {
    this.#offer = offer;
    this.#inbox?.changed();
  }

  get abilities(): Abilities {
    const { maxText, markdown } = this.#offer;
    return {
      ...{ maxText, markdown, counts: 'utf16', edit: false, remove: false, typing: false, reactions: false },
      ...{ threads: true, buttons: false, files: { in: false, out: false, maxBytes: 0 }, editEveryMs: 0 },
    };
  }

  get state(): PlatformState {
    const { process, problem } = this.#live;
    const phase = process === null ? 'degraded' : 'connected';
    return { phase: this.#inbox === null ? 'stopped' : phase, problem, lastSuccessAt: this.#lastSuccessAt };
  }

  /** Listens from now on, also in processes that are started later. */
  async start(inbox: PluginInbox): Promise<void> {
    this.#inbox = inbox;
    await this.#live.deps.settle();
  }

  async stop(): Promise<void> {
    this.#inbox = null;
    await this.#live.deps.settle();
  }

  /** Stops it in a process of before, and only then starts it in the process of now, if the gateway wants it. */
  async settle(): Promise<void> {
    const wanted = this.#inbox === null ? null : this.#live.process;
    if (this.#started?.process === wanted) return;
    await this.halt();
    if (wanted !== null) this.#startIn(wanted);
  }

  /** Stops it in its process; `settle` can start it again. */
  async halt(): Promise<void> {
    const started = this.#started;
    this.#started = null;
    started?.abort.abort();
    if (started === null || started.process.isGone) return;
    try {
      await started.process.call(methodOf('platforms', this.name, 'stop'), [], { timeoutMs: STOP_MS });
    } catch (thrown) {
      // Its process ends soon, and the platform with it.
      const error = MoiraiError.wrap(thrown).message;
      const { plugin, name: platform } = this;
      this.#live.deps.log.warn('platform of a plugin did not stop', { plugin, platform, error });
    }
  }

  /** Throws while the plugin's process is away: it may be tried again. */
  async send(place: Place, { text }: Outgoing, signal: AbortSignal): Promise<{ messageId: string }> {
    const target: SendTarget = { chat_id: place.chat, chat_type: place.type, thread_id: place.thread ?? null };
    const sent = await this.#live.call(methodOf('platforms', this.name, 'send'), [target, text], { signal });
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

  #startIn(process: ExtensionProcess): void {
    const { plugin, name } = this;
    const abort = new AbortController();
    this.#started = { process, abort };
    // No deadline: a platform may listen for as long as this goes on.
    process.call(methodOf('platforms', name, 'start'), [], { signal: abort.signal }).catch((thrown: unknown) => {
      if (abort.signal.aborted || process.isGone) return;
      // Started again with everything else, after a pause that grows.
      process.kill(`could not start its platform ${name}: ${MoiraiError.wrap(thrown).message}`);
    });
    this.#live.deps.log.info('platform of a plugin started', { plugin, platform: name });
  }
}

const CHAT_TYPES: readonly unknown[] = ['dm', 'group', 'channel', 'thread'];

/** What a plugin gave, with nothing left open. */
function incomingFrom(platform: string, given: InboxMessage): Incoming {
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
