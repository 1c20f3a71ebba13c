import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';
import { Breaker } from '../host/breaker.ts';
import { asSubscriber, type CallOptions, type ExtensionProcess } from '../host/extension-process.ts';
import { ExtensionRecord, type Listener } from '../host/subscriptions.ts';
import type { FinishedToolCall, InboxMessage } from './api.ts';
import { OFFER_KINDS } from './names.ts';
import type { Offer, PlatformOffer } from './offer.ts';
import { makeOffers, type Offers } from './offers.ts';
import type { UsablePlugin } from './plugin-kind.ts';
import { PluginPlatform } from './plugin-platform.ts';
import { loadPlugin, type PluginDeps, retirePlugin } from './plugin-process.ts';

/** One that lived so long has recovered: its next death is its first. */
const WELL_MS = 60_000;

/** Conversations that one plugin hears at the same time; it has one process. */
const CONCURRENCY = 8;

/** Tools that a process which is blocked has not heard of yet; more are left out. */
const MOST_TOLD = 256;

const NOTHING: Offer = {
  events: [],
  hearsTools: false,
  gates: [],
  tools: [],
  commands: [],
  memoryProviders: [],
  platforms: [],
};

/** A plugin at work: its process as it is now, started again when it dies. */
export class LivePlugin implements Listener {
  readonly concurrency = CONCURRENCY;
  readonly deps: PluginDeps;
  readonly record = new ExtensionRecord();
  /** What memory providers were initialized with: a new process of theirs is, too. */
  readonly memoryContexts = new Map<string, { readonly folder: string }>();
  readonly #log: Logger;
  readonly #platforms = new Map<string, PluginPlatform>();
  readonly #first = Promise.withResolvers<void>();
  /** How long to wait before it is started again. */
  readonly #pause: Breaker;
  #plugin: UsablePlugin;
  #process: ExtensionProcess | null = null;
  #offer: Offer = NOTHING;
  #offers: Offers;
  #problem: string | null = null;
  /** As it was found last; loaded or refused, it is not tried again before it changes. */
  #wanted: UsablePlugin | null = null;
  #latestLoad: Promise<void> = Promise.resolve();
  #isLoading = true;
  #attempt = new AbortController();
  #closed = false;
  #telling = 0;

  constructor(plugin: UsablePlugin, deps: PluginDeps) {
    this.#plugin = plugin;
    this.deps = deps;
    this.#log = deps.log.child({ plugin: plugin.name });
    this.#pause = new Breaker(() => deps.host.timers.elapsed());
    this.#offers = makeOffers(this, { ...NOTHING, gates: plugin.manifest.gates });
  }

  get plugin(): UsablePlugin {
    return this.#plugin;
  }

  get name(): string {
    return this.#plugin.name;
  }

  /** Null while it is loaded for the first time, or started again. */
  get process(): ExtensionProcess | null {
    return this.#process;
  }

  /**
   * The last ones: what a plugin offers does not vanish while its process is started again. Before it was loaded, the gates
   * that plugin.yaml declares.
   */
  get offers(): Offers {
    return this.#offers;
  }

  get problem(): string | null {
    return this.#problem;
  }

  /** `bad`: it has never been loaded. */
  get state(): 'ready' | 'loading' | 'restarting' | 'bad' {
    if (this.#process !== null) return 'ready';
    if (this.#offer !== NOTHING) return 'restarting';
    return this.#isLoading ? 'loading' : 'bad';
  }

  /** Resolves when it was loaded, or refused, for the first time. */
  get firstLoad(): Promise<void> {
    return this.#first.promise;
  }

  /** Whether these files have been loaded, or tried. */
  knows({ fingerprint }: UsablePlugin): boolean {
    return this.#wanted?.fingerprint === fingerprint;
  }

  get events(): readonly string[] {
    return this.#offer.events;
  }

  get timeoutMs(): number {
    return this.#plugin.manifest.timeoutMs ?? this.deps.timeoutMs;
  }

  /** Tells its observers what happened, in whatever process it is at the moment. */
  async handle(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    try {
      await this.call('event', [event], { timeoutMs: this.timeoutMs, signal });
      this.record.handled++;
    } catch (thrown) {
      const error = asSubscriber(thrown);
      if (!signal.aborted && error.code !== 'subscriber_unavailable') {
        this.record.countFailure(error);
        this.#log.warn('plugin failed', { event: event.id, type: event.type, error: error.message });
      }
      throw error;
    }
  }

  /** Tells of a tool that was run. Nothing waits for it. */
  tellToolDone(done: FinishedToolCall): void {
    if (!this.#offer.hearsTools || this.#telling >= MOST_TOLD) return;
    this.#telling++;
    this.call('tool_done', [done], { timeoutMs: this.deps.timeoutMs })
      .catch((thrown: unknown) => this.record.countFailure(MoiraiError.wrap(thrown)))
      .finally(() => this.#telling--);
  }

  /** Throws as a process does, and `plugin_unavailable` while there is none. */
  async call(method: string, args: readonly unknown[], options?: CallOptions): Promise<unknown> {
    if (this.#process !== null) return this.#process.call(method, args, options);
    const why = this.#problem === null ? 'is being loaded' : `is being started again: ${this.#problem}`;
    throw new MoiraiError('plugin_unavailable', `${this.name} ${this.#closed ? 'was removed' : why}`);
  }

  /** Loads these files in a new process, and goes on there; what cannot be loaded is refused. */
  use(plugin: UsablePlugin): void {
    this.#wanted = plugin;
    if (this.#offer === NOTHING) {
      this.#plugin = plugin;
      this.#offers = makeOffers(this, { ...NOTHING, gates: plugin.manifest.gates });
    }
    // Where there is something at work one version is loaded after the other: else frequent changes would show none.
    const before = this.#process === null ? Promise.resolve() : this.#latestLoad;
    const signal = this.#process === null ? this.#newAttempt() : this.#attempt.signal;
    this.#latestLoad = before.then(() => (this.#wanted === plugin ? this.#load(plugin, signal) : undefined));
  }

  /** Resolves when the files that were found last were loaded, or refused. */
  get latestLoad(): Promise<void> {
    return this.#latestLoad;
  }

  /** The same object each time for the same name; it can do what this offer says. */
  platform(offer: PlatformOffer): PluginPlatform {
    const known = this.#platforms.get(offer.name);
    known?.update(offer);
    const platform = known ?? new PluginPlatform(this, offer);
    this.#platforms.set(offer.name, platform);
    return platform;
  }

  async close(graceMs?: number): Promise<void> {
    this.#closed = true;
    this.#attempt.abort();
    this.#loaded();
    const process = this.#process;
    this.#process = null;
    if (process !== null) await retirePlugin(process, this.deps, graceMs);
  }

  async #load(plugin: UsablePlugin, signal: AbortSignal, restarts = 0): Promise<void> {
    try {
      const { process, offer } = await loadPlugin(
        plugin,
        this.deps,
        (name, message) => this.#receive(name, message),
        signal,
      );
      if (signal.aborted) return process.kill('is not needed any more');
      this.#assertDeclared(plugin, process, offer);
      this.record.restarts += restarts;
      await this.#install(plugin, process, offer);
    } catch (thrown) {
      if (!signal.aborted) this.#refuse(plugin, MoiraiError.wrap(thrown, 'plugin_invalid'));
    }
  }

  /** Takes a message of one of its platforms; resolves when it is durable. */
  async #receive(name: string, message: InboxMessage): Promise<void> {
    const platform = this.#platforms.get(name);
    if (platform === undefined) throw new MoiraiError('bad_input', `the platform ${name} is not ${this.name}'s`);
    await platform.receive(message);
  }

  /** Goes on in another process; the one before finishes what it has in hand. */
  async #install(plugin: UsablePlugin, process: ExtensionProcess, offer: Offer): Promise<void> {
    const old = this.#process;
    // Other files, other fate.
    if (plugin !== this.#plugin) this.#pause.succeeded();
    this.#plugin = plugin;
    this.#process = process;
    this.#offer = offer;
    this.#offers = makeOffers(this, offer);
    this.#problem = null;
    const since = this.deps.host.timers.elapsed();
    void process.gone.then((why) => this.#died(process, why, since));
    this.#log.info(old === null ? 'plugin ready' : 'plugin reloaded', summaryOf(this.#offer));
    const settled = this.deps.changed();
    this.#loaded();
    await settled;
    if (old !== null) void retirePlugin(old, this.deps);
  }

  /** A version of it could not be loaded. What there is stays; where there is nothing, it is tried again. */
  #refuse(plugin: UsablePlugin, error: MoiraiError): void {
    this.#loaded();
    if (this.#problem !== error.message) {
      this.#log.error('plugin refused', { problem: error.message, stays: this.#process !== null });
    }
    this.#problem = error.message;
    if (this.#process !== null) return;
    this.#plugin = plugin;
    this.#startLater();
  }

  #loaded(): void {
    this.#isLoading = false;
    this.#first.resolve();
  }

  /**
   * A gate that is closed in its code alone would be open whenever that code cannot be loaded: such a version is refused,
   * and its gates are closed for as long as it is the only one.
   */
  #assertDeclared({ manifest }: UsablePlugin, process: ExtensionProcess, offer: Offer): void {
    const closed = offer.gates.filter(({ onFailure }) => onFailure === 'closed');
    const names = closed.map(({ gate }) => gate);
    const missing = names.find((name) => !manifest.gates.some(({ gate }) => gate === name));
    if (missing === undefined) return;
    process.kill('has a closed gate that plugin.yaml does not declare');
    if (this.#offer === NOTHING) this.#offers = makeOffers(this, { ...NOTHING, gates: closed });
    const declaration = `gates: {${missing}: {on_failure: closed}}`;
    throw new MoiraiError(
      'plugin_invalid',
      `the gate ${missing} is closed in its code alone; plugin.yaml needs ${declaration}`,
    );
  }

  #died(process: ExtensionProcess, why: string, since: number): void {
    if (this.#process !== process || this.#closed) return;
    this.#process = null;
    this.#problem = `its process died: it ${why}`;
    this.record.lastError = this.#problem;
    if (this.deps.host.timers.elapsed() - since > WELL_MS) this.#pause.succeeded();
    for (const platform of this.#platforms.values()) platform.update();
    const in_ms = this.#startLater();
    this.#log.error('plugin died; it is started again', { why: `it ${why}`, in_ms });
  }

  /** After a pause that is longer each time. */
  #startLater(): number {
    this.#pause.trip();
    const { againInMs } = this.#pause.capacity(1);
    const signal = this.#newAttempt();
    const load = (): void => void this.#load(this.#wanted ?? this.#plugin, signal, 1);
    signal.addEventListener('abort', this.deps.host.timers.after(againInMs, load), { once: true });
    return Math.round(againInMs);
  }

  #newAttempt(): AbortSignal {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    return this.#attempt.signal;
  }
}

/** What it offers, for the log. */
function summaryOf(offer: Offer): Record<string, unknown> {
  const names = OFFER_KINDS.map((kind) => [kind, offer[kind].map(({ name }) => name)]);
  const { memoryProviders: memory_providers, ...others } = Object.fromEntries(names) as Record<string, string[]>;
  return { events: offer.events, gates: offer.gates.map(({ gate }) => gate), ...others, memory_providers };
}
