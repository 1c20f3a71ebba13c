import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { CallOptions, ExtensionProcess } from '../host/extension-process.ts';
import type { UsablePlugin } from './plugin-kind.ts';
import { PluginPlatform } from './plugin-platform.ts';
import { loadPlugin, offerOf, type PluginDeps, retirePlugin } from './plugin-process.ts';
import type { Call, GateOffer, Offer, PlatformOffer } from './protocol.ts';

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** One that lived so long has recovered: its next death is its first. */
const WELL_MS = 60_000;

const NOTHING: Offer = {
  ...{ events: [], hearsTools: false, gates: [], tools: [], commands: [], memoryProviders: [], platforms: [] },
};

/** How a plugin has fared since it was first loaded. */
export interface PluginRecord {
  handled: number;
  failed: number;
  /** How often its process died and was started again. */
  restarts: number;
  lastError: string | null;
}

/** What looks after all plugins. */
export interface Supervisor {
  /** A process was loaded: what the plugin offers may be something else. Resolves when that is in force. */
  changed(): Promise<void>;
  /** Brings what is started in line with what is wanted. */
  settle(): Promise<void>;
}

/** A plugin at work: its process as it is now, started again when it dies. */
export class LivePlugin {
  readonly record: PluginRecord = { handled: 0, failed: 0, restarts: 0, lastError: null };
  /** What memory providers were initialized with: a new process of theirs is, too. */
  readonly memoryContexts = new Map<string, { readonly folder: string }>();
  readonly #deps: PluginDeps;
  readonly #log: Logger;
  readonly #supervisor: Supervisor;
  readonly #platforms = new Map<string, PluginPlatform>();
  readonly #first = Promise.withResolvers<void>();
  #plugin: UsablePlugin;
  #process: ExtensionProcess | null = null;
  #offer: Offer = NOTHING;
  #problem: string | null = null;
  /** As it was found last; loaded or refused, it is not tried again before it changes. */
  #wanted: UsablePlugin | null = null;
  #latestLoad: Promise<void> = Promise.resolve();
  #isLoading = true;
  #deaths = 0;
  #attempt = new AbortController();
  #closed = false;

  constructor(plugin: UsablePlugin, deps: PluginDeps, supervisor: Supervisor) {
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

  /** Null while it is loaded for the first time, or started again. */
  get process(): ExtensionProcess | null {
    return this.#process;
  }

  /** The last one: what a plugin offers does not vanish while its process is started again. */
  get offer(): Offer {
    return this.#offer;
  }

  /** As its code registered them; before that, as plugin.yaml declares them. */
  get gates(): readonly GateOffer[] {
    if (this.#offer !== NOTHING) return this.#offer.gates;
    return Object.entries(this.#plugin.manifest.gates).map(([gate, settings]) => ({ ...settings, gate }) as GateOffer);
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

  /** Throws as a process does, and `plugin_unavailable` while there is none. */
  async call(call: Call, options?: CallOptions): Promise<unknown> {
    if (this.#process !== null) return this.#process.call(call, options);
    const why = this.#problem === null ? 'is being loaded' : `is being started again: ${this.#problem}`;
    throw new MoiraiError('plugin_unavailable', `${this.name} ${this.#closed ? 'was removed' : why}`);
  }

  /** Loads these files in a new process, and goes on there; what cannot be loaded is refused. */
  use(plugin: UsablePlugin): void {
    this.#wanted = plugin;
    if (this.#offer === NOTHING) this.#plugin = plugin;
    // Where there is something at work one version is loaded after the other: else frequent changes would show none.
    const before = this.#process === null ? Promise.resolve() : this.#latestLoad;
    const signal = this.#process === null ? this.#newAttempt() : this.#attempt.signal;
    this.#latestLoad = before.then(() => (this.#wanted === plugin ? this.#load(plugin, signal) : undefined));
  }

  /** Resolves when the files that were found last were loaded, or refused. */
  get latestLoad(): Promise<void> {
    return this.#latestLoad;
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
    this.#attempt.abort();
    this.#loaded();
    const process = this.#process;
    this.#process = null;
    if (process !== null) await retirePlugin(process, this.#deps, graceMs);
  }

  async #load(plugin: UsablePlugin, signal: AbortSignal, restarts = 0): Promise<void> {
    try {
      const process = await loadPlugin(plugin, this.#deps, signal);
      if (signal.aborted) return process.kill('is not needed any more');
      this.record.restarts += restarts;
      await this.#install(plugin, process);
    } catch (thrown) {
      if (!signal.aborted) this.#refuse(plugin, MoiraiError.wrap(thrown, 'plugin_invalid'));
    }
  }

  /** Goes on in another process; the one before finishes what it has in hand. */
  async #install(plugin: UsablePlugin, process: ExtensionProcess): Promise<void> {
    const old = this.#process;
    // Other files, other fate.
    if (plugin !== this.#plugin) this.#deaths = 0;
    this.#plugin = plugin;
    this.#process = process;
    this.#offer = offerOf(process);
    this.#problem = null;
    const since = this.#deps.timers.elapsed();
    void process.gone.then((why) => this.#died(process, why, since));
    this.#log.info(old === null ? 'plugin ready' : 'plugin reloaded', summaryOf(this.#offer));
    this.#adviseDeclaring();
    const settled = this.#supervisor.changed();
    this.#loaded();
    await settled;
    if (old !== null) void retirePlugin(old, this.#deps);
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
    this.#deaths++;
    this.#startLater();
  }

  #loaded(): void {
    this.#isLoading = false;
    this.#first.resolve();
  }

  #adviseDeclaring(): void {
    const { gates } = this.#plugin.manifest;
    for (const { gate, onFailure } of this.#offer.gates) {
      if (onFailure !== 'closed' || gates[gate] !== undefined) continue;
      const declare = `gates: {${gate}: {on_failure: closed}}`;
      this.#log.warn('a closed gate is open until its plugin is loaded, unless plugin.yaml declares it', {
        gate,
        declare,
      });
    }
  }

  #died(process: ExtensionProcess, why: string, since: number): void {
    if (this.#process !== process || this.#closed) return;
    this.#process = null;
    this.#problem = `its process died: it ${why}`;
    this.record.lastError = this.#problem;
    this.#deaths = this.#deps.timers.elapsed() - since > WELL_MS ? 1 : this.#deaths + 1;
    for (const platform of this.#platforms.values()) platform.died();
    this.#log.error('plugin died; it is started again', { why: `it ${why}`, in_ms: this.#pauseMs });
    this.#startLater();
  }

  get #pauseMs(): number {
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#deaths - 1, 10));
  }

  #startLater(): void {
    const signal = this.#newAttempt();
    const cancel = this.#deps.timers.after(
      this.#pauseMs,
      () => void this.#load(this.#wanted ?? this.#plugin, signal, 1),
    );
    signal.addEventListener('abort', cancel, { once: true });
  }

  #newAttempt(): AbortSignal {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    return this.#attempt.signal;
  }
}

function summaryOf({ events, gates, tools, commands, memoryProviders, platforms }: Offer): Record<string, unknown> {
  const names = (list: readonly { readonly name: string }[]): string[] => list.map(({ name }) => name);
  return {
    ...{ events, gates: gates.map(({ gate }) => gate), tools: names(tools), commands: names(commands) },
    ...{ memory_providers: names(memoryProviders), platforms: names(platforms) },
  };
}
