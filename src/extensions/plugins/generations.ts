import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Dispatcher } from '../../events/dispatcher.ts';
import { RemovedSubscribers } from '../../events/removed-subscribers.ts';
import type { Logger } from '../../log/logger.ts';
import { processTimers, type Timers } from '../../queue/timers.ts';
import type { Store } from '../../store/port.ts';
import { hookEnvironment } from '../host/environment.ts';
import { ExtensionFolder } from '../host/extension-folder.ts';
import type { ExtensionHost } from '../host/extension-host.ts';
import type { GateName, InboxMessage } from './api.ts';
import { closedGate, type Gate } from './gates.ts';
import { formGeneration, type Generation, type ReservedNames } from './generation.ts';
import { LivePlugin, type Supervisor } from './live-plugin.ts';
import { Observers, subscriberOf } from './observers.ts';
import { PlatformStarts, type Started } from './platform-starts.ts';
import { closedGatesIn, type FoundPlugin, PLUGIN_KIND, type PluginManifest, pluginsFolder } from './plugin-kind.ts';
import { PLUGIN_LIMITS, type PluginDeps, type PluginLimits } from './plugin-process.ts';
import { type PluginStatus, statusOf } from './plugin-status.ts';

export interface PluginsOptions {
  readonly home: string;
  /** Runs their processes. */
  readonly host: ExtensionHost;
  readonly dispatcher: Pick<Dispatcher, 'subscribe' | 'leave'>;
  readonly store: Store;
  readonly log: Logger;
  /** The gateway's own; plugins get the harmless part of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How often an event is tried before it is kept as a dead letter. */
  readonly maxAttempts: number;
  /** How long a plugin may work on one event, unless its plugin.yaml says so. */
  readonly timeoutMs: number;
  /** Names that the gateway has itself. */
  readonly reserved?: ReservedNames;
  readonly timers?: Timers;
  readonly limits?: Partial<PluginLimits>;
}

/** At a stop, what is under way has so long to finish. */
const STOP_GRACE_MS = 2000;
/** What has to be asked waits so long for plugins that are loaded for the first time. */
const FIRST_LOAD_MS = 2000;

/**
 * Brings plugins from the folder to work, each by itself. What they offer at one moment is one generation: after a change
 * the new process is loaded first, and then the generation is replaced as a whole.
 */
export class Generations {
  readonly #options: PluginsOptions;
  readonly #deps: PluginDeps;
  readonly #live = new Map<string, LivePlugin>();
  readonly #observers: Observers;
  readonly #starts: PlatformStarts;
  readonly #removed: RemovedSubscribers;
  readonly #folder: ExtensionFolder<PluginManifest, { readonly main: string }>;
  readonly #changed = new Set<() => void>();
  readonly #supervisor: Supervisor = { changed: () => this.#replace(), settle: () => this.#settle() };
  #found: readonly FoundPlugin[] = [];
  #closed: readonly Gate[] = [];
  #withheld: ReadonlySet<string> = new Set();
  #current: Generation;
  #reloadAll = false;
  #settling: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: PluginsOptions) {
    const { home, host, log, timers = processTimers, environment, limits, dispatcher, store } = options;
    this.#options = options;
    this.#deps = {
      ...{ home, host, log, timers, environment: hookEnvironment(environment, home) },
      limits: { ...PLUGIN_LIMITS, ...limits },
      receive: (plugin, platform, message) => this.#receive(plugin, platform, message),
    };
    this.#observers = new Observers(dispatcher, options, log);
    this.#starts = new PlatformStarts(log);
    this.#removed = new RemovedSubscribers(store, timers, (name) => name.startsWith(subscriberOf('')));
    this.#current = this.#form();
    this.#folder = new ExtensionFolder({
      ...{ root: pluginsFolder(home), kind: PLUGIN_KIND, timers, log },
      apply: (found) => this.#apply(found),
    });
  }

  get current(): Generation {
    return this.#current;
  }

  statuses(): PluginStatus[] {
    const statuses = this.#found.map((found) =>
      statusOf(found, this.#liveOf(found), this.#current, this.#options.timeoutMs),
    );
    return statuses.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Calls when there may be other tools, commands, providers or platforms than before; the returned function ends it. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  /** Looks at the folder, and begins to load what is new there. */
  scan(): Promise<void> {
    return this.#folder.look();
  }

  /** Resolves when what changed, or everything, was loaded or refused. */
  async reload(which: 'changed' | 'all'): Promise<void> {
    this.#reloadAll ||= which === 'all';
    await this.#folder.look();
    await Promise.all([...this.#live.values()].map(({ latestLoad }) => latestLoad));
  }

  /** Who is to be asked, as soon as that is known: one that is closed until it is loaded is waited for. */
  async gates(name: GateName): Promise<readonly Gate[]> {
    await this.loaded();
    const closed = [...this.#live.values()].filter(({ gates }) =>
      gates.some(({ gate, onFailure }) => gate === name && onFailure === 'closed'),
    );
    await Promise.all(closed.map(({ firstLoad }) => firstLoad));
    return this.#current.gates[name];
  }

  /** Resolves when every plugin was loaded or refused once, or after 2 s. */
  async loaded(): Promise<void> {
    if (![...this.#live.values()].some(({ state }) => state === 'loading')) return;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.timers.after(FIRST_LOAD_MS, resolve);
    await Promise.race([this.firstLoads(), late]);
    cancel();
  }

  /** Resolves when every plugin was loaded or refused once. */
  async firstLoads(): Promise<void> {
    await Promise.all([...this.#live.values()].map(({ firstLoad }) => firstLoad));
  }

  /** Ends every plugin. What was not finished comes again at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#folder.close();
    await this.#settling;
    await this.#observers.serve([]);
    await this.#starts.keep([]);
    await Promise.all([...this.#live.values()].map((live) => live.close(STOP_GRACE_MS)));
  }

  async #apply(found: readonly FoundPlugin[]): Promise<void> {
    const all = this.#reloadAll;
    this.#reloadAll = false;
    this.#found = found;
    const leaving = this.#leaving();
    for (const live of leaving) this.#live.delete(live.name);
    const closed = await this.#closedGates();
    let isNew = false;
    for (const plugin of found) {
      if (plugin.state !== 'ready') continue;
      const live = this.#live.get(plugin.name) ?? new LivePlugin(plugin, this.#deps, this.#supervisor);
      isNew ||= live.state === 'loading' || live.state === 'bad';
      this.#live.set(plugin.name, live);
      if (all || !live.knows(plugin)) live.use(plugin);
    }
    const wasClosed = JSON.stringify(this.#closed);
    this.#closed = closed;
    if (leaving.length > 0 || isNew || JSON.stringify(closed) !== wasClosed) await this.#replace();
    for (const live of leaving) {
      void live.close();
      this.#options.log.info('plugin left', { plugin: live.name });
    }
    await this.#removed.tidy(this.#keepers().map(subscriberOf));
  }

  /** Of folders that cannot be used, and of which nothing older is at work. */
  async #closedGates(): Promise<Gate[]> {
    const gates: Gate[] = [];
    for (const found of this.#found) {
      if (found.state !== 'bad' || this.#liveOf(found) !== undefined) continue;
      for (const gate of await closedGatesIn(found.folder)) gates.push(closedGate(gate, found.name, found.problem));
    }
    return gates;
  }

  /** Who was removed or turned off. Who only became unreadable stays as it was. */
  #leaving(): LivePlugin[] {
    const stays = (live: LivePlugin): boolean =>
      this.#found.some(({ state, name, folder }) =>
        state === 'bad' ? folder === live.plugin.folder : state === 'ready' && name === live.name,
      );
    return [...this.#live.values()].filter((live) => !stays(live));
  }

  /** From one generation to the next without a moment in between. Never rejects. */
  async #replace(): Promise<void> {
    if (this.#stopped) return;
    this.#current = this.#form();
    this.#reportWithheld();
    for (const listener of this.#changed) listener();
    try {
      await this.#settle();
    } catch (error) {
      this.#options.log.error('a plugin could not be served', { error: MoiraiError.wrap(error) });
    }
  }

  #form(): Generation {
    const plugins = [...this.#live.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return formGeneration(plugins, this.#deps, this.#options.reserved ?? {}, this.#closed);
  }

  /** Brings subscriptions and platforms in line with the generation; one after another. */
  #settle(): Promise<void> {
    const settled = this.#settling.then(async () => {
      if (this.#stopped) return;
      await this.#observers.serve([...this.#live.values()]);
      await this.#starts.keep(this.#wantedPlatforms());
    });
    this.#settling = settled.catch(() => undefined); // Whoever asked is told; the next one begins anew.
    return settled;
  }

  #wantedPlatforms(): Started[] {
    return this.#current.platforms.flatMap(({ plugin, name, wanted }) => {
      const process = this.#live.get(plugin)?.process ?? null;
      return process === null || !wanted ? [] : [{ process, plugin, name }];
    });
  }

  async #receive(plugin: string, name: string, message: InboxMessage): Promise<void> {
    const platform = this.#current.platforms.find((each) => each.name === name && each.plugin === plugin);
    if (platform === undefined) throw new MoiraiError('bad_input', `the platform ${name} is not ${plugin}'s`);
    await platform.receive(message);
  }

  #liveOf(found: FoundPlugin): LivePlugin | undefined {
    if (found.state !== 'bad') return this.#live.get(found.name);
    return [...this.#live.values()].find(({ plugin }) => plugin.folder === found.folder);
  }

  /** Whose place in the log stays: all that are there, but those that want to hear nothing any more. */
  #keepers(): string[] {
    const deaf = [...this.#live.values()].filter(({ state, offer }) => state === 'ready' && offer.events.length === 0);
    const names = this.#found.map((found) => this.#liveOf(found)?.name ?? found.name);
    return names.filter((name) => !deaf.some((live) => live.name === name));
  }

  /** Says once what is offered in vain. */
  #reportWithheld(): void {
    const said = this.#withheld;
    const now = [...this.#current.withheld].flatMap(([plugin, list]) => list.map((problem) => ({ plugin, problem })));
    this.#withheld = new Set(now.map((complaint) => JSON.stringify(complaint)));
    for (const complaint of now) {
      if (!said.has(JSON.stringify(complaint))) this.#options.log.error('plugin refused', complaint);
    }
  }
}
