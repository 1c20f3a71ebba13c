import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { UsablePlugin } from './discover.ts';
import { PluginPlatform } from './plugin-platform.ts';
import { type CallOptions, PluginThread, type ThreadDeps } from './plugin-thread.ts';
import type { Call, Offer, PlatformOffer } from './protocol.ts';

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Who lived so long has recovered: its next death is its first. */
const WELL_MS = 60_000;

const NOTHING: Offer = {
  ...{ events: [], hearsTools: false, gates: [], tools: [], commands: [], memoryProviders: [], platforms: [] },
};

/** How a plugin has fared since it was first loaded. */
export interface PluginRecord {
  handled: number;
  failed: number;
  /** How often its thread died and was started again. */
  restarts: number;
  lastError: string | null;
}

/** Who looks after all plugins. */
export interface Supervisor {
  /** A thread was started again after a death: it may offer something else. */
  restarted(): void;
  /** Brings what is started in line with what is wanted. */
  settle(): Promise<void>;
}

/** A plugin at work: its thread as it is now, started again when it dies. */
export class LivePlugin {
  readonly record: PluginRecord = { handled: 0, failed: 0, restarts: 0, lastError: null };
  /** What memory providers were initialized with: a new thread of theirs is, too. */
  readonly memoryContexts = new Map<string, { readonly folder: string }>();
  readonly #deps: ThreadDeps;
  readonly #log: Logger;
  readonly #supervisor: Supervisor;
  readonly #platforms = new Map<string, PluginPlatform>();
  #plugin: UsablePlugin;
  #thread: PluginThread | null = null;
  #offer: Offer = NOTHING;
  #problem: string | null = null;
  /** The files that could not be loaded: they are not tried again before they change. */
  #refused: string | null = null;
  #deaths = 0;
  #restart = new AbortController();
  #closed = false;

  constructor(plugin: UsablePlugin, deps: ThreadDeps, supervisor: Supervisor) {
    this.#plugin = plugin;
    this.#deps = deps;
    this.#log = deps.log.child({ plugin: plugin.name });
    this.#supervisor = supervisor;
  }

  get plugin(): UsablePlugin {
    return this.#plugin;
  }

  get name(): string {
    return this.#plugin.name;
  }

  /** Null while it is started again. */
  get thread(): PluginThread | null {
    return this.#thread;
  }

  /** The last one: what a plugin offers does not vanish while its thread is started again. */
  get offer(): Offer {
    return this.#offer;
  }

  get problem(): string | null {
    return this.#problem;
  }

  /** `bad`: it has never been loaded. */
  get state(): 'ready' | 'restarting' | 'bad' {
    if (this.#thread !== null) return 'ready';
    return this.#offer === NOTHING ? 'bad' : 'restarting';
  }

  /** Whether these files have been loaded, or tried. */
  knows({ fingerprint }: UsablePlugin): boolean {
    return this.#plugin.fingerprint === fingerprint || this.#refused === fingerprint;
  }

  /** Throws as a thread does, and `plugin_unavailable` while there is none. */
  async call(call: Call, options?: CallOptions): Promise<unknown> {
    if (this.#thread !== null) return this.#thread.call(call, options);
    const why = this.#closed ? 'was removed' : `is being started again: ${this.#problem}`;
    throw new MoiraiError('plugin_unavailable', `${this.name} ${why}`);
  }

  /** Goes on in another thread; returns the one before, which finishes what it has in hand. */
  install(plugin: UsablePlugin, thread: PluginThread): PluginThread | null {
    this.#cancelRestart();
    const old = this.#thread;
    // Other files, other fate.
    if (plugin !== this.#plugin) this.#deaths = 0;
    this.#plugin = plugin;
    this.#thread = thread;
    this.#offer = thread.offer;
    this.#problem = null;
    this.#refused = null;
    const since = this.#deps.timers.elapsed();
    void thread.gone.then((why) => this.#died(thread, why, since));
    return old;
  }

  /** A version of it could not be loaded. What there is stays; where there is nothing, it is tried again. */
  refuse(plugin: UsablePlugin, error: MoiraiError): void {
    if (this.#problem !== error.message) {
      this.#log.error('plugin refused', { problem: error.message, stays: this.#thread !== null });
    }
    this.#problem = error.message;
    this.#refused = plugin.fingerprint;
    if (this.#thread !== null) return;
    this.#plugin = plugin;
    this.#deaths++;
    this.#startLater();
  }

  /** The same object each time for the same name. */
  platform(offer: PlatformOffer): PluginPlatform {
    const known = this.#platforms.get(offer.name);
    if (known !== undefined) known.renew(offer);
    const platform = known ?? new PluginPlatform(this, offer, () => this.#supervisor.settle());
    this.#platforms.set(offer.name, platform);
    return platform;
  }

  failed(error: MoiraiError): void {
    this.record.failed++;
    this.record.lastError = error.message;
  }

  async close(graceMs?: number): Promise<void> {
    this.#closed = true;
    this.#cancelRestart();
    const thread = this.#thread;
    this.#thread = null;
    await thread?.retire(graceMs);
  }

  #died(thread: PluginThread, why: string, since: number): void {
    if (this.#thread !== thread || this.#closed) return;
    this.#thread = null;
    this.#problem = `its thread died: ${why}`;
    this.record.lastError = this.#problem;
    this.#deaths = this.#deps.timers.elapsed() - since > WELL_MS ? 1 : this.#deaths + 1;
    for (const platform of this.#platforms.values()) platform.died();
    this.#log.error('plugin died; it is started again', { why, in_ms: this.#pauseMs });
    this.#startLater();
  }

  get #pauseMs(): number {
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#deaths - 1, 10));
  }

  #startLater(): void {
    this.#cancelRestart();
    const { signal } = this.#restart;
    const cancel = this.#deps.timers.after(this.#pauseMs, () => void this.#startAgain(signal));
    signal.addEventListener('abort', cancel, { once: true });
  }

  async #startAgain(signal: AbortSignal): Promise<void> {
    try {
      const thread = await PluginThread.load(this.#plugin, this.#deps, signal);
      if (signal.aborted) return thread.kill('it is not needed any more');
      this.record.restarts++;
      this.install(this.#plugin, thread);
      this.#log.info('plugin started again', { restarts: this.record.restarts });
      this.#supervisor.restarted();
    } catch (thrown) {
      if (signal.aborted) return;
      this.refuse(this.#plugin, MoiraiError.wrap(thrown, 'plugin_unavailable'));
    }
  }

  #cancelRestart(): void {
    this.#restart.abort();
    this.#restart = new AbortController();
  }
}

/** What a subscriber throws: what the plugin did not get is not counted, what it failed in is. */
export function asSubscriber(thrown: unknown): MoiraiError {
  const error = MoiraiError.wrap(thrown, 'subscriber_failed');
  return new MoiraiError(subscriberCode(error), error.message, { cause: error.cause ?? error });
}

function subscriberCode({ code, details }: MoiraiError): ErrorCode {
  if (code === 'subscriber_unavailable' || code === 'plugin_unavailable') return 'subscriber_unavailable';
  // The plugin itself says that what it needs is down.
  if (details.code === 'subscriber_unavailable') return 'subscriber_unavailable';
  return code === 'plugin_timeout' ? 'subscriber_timeout' : 'subscriber_failed';
}
