import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Dispatcher } from '../../events/dispatcher.ts';
import { RemovedSubscribers } from '../../events/removed-subscribers.ts';
import type { Logger } from '../../log/logger.ts';
import { processTimers, type Timers } from '../../queue/timers.ts';
import type { Store } from '../../store/port.ts';
import { hookEnvironment } from '../host/environment.ts';
import { FolderWatch } from '../host/folder-watch.ts';
import type { InboxMessage } from './api.ts';
import { type BadPlugin, discoverPlugins, type FoundPlugin, pluginsFolder, type UsablePlugin } from './discover.ts';
import { formGeneration, type Generation, type ReservedNames } from './generation.ts';
import { LivePlugin, type Supervisor } from './live-plugin.ts';
import { Observers, subscriberOf } from './observers.ts';
import { PlatformStarts } from './platform-starts.ts';
import { type PluginStatus, statusOf } from './plugin-status.ts';
import { PluginThread, THREAD_LIMITS, type ThreadDeps, type ThreadLimits } from './plugin-thread.ts';

export interface PluginsOptions {
  readonly home: string;
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
  readonly limits?: Partial<ThreadLimits>;
}

/** At a stop, what is under way has so long to finish. */
const STOP_GRACE_MS = 2000;

/**
 * Brings plugins from the folder to work. What they offer at one moment is one generation: after a change the new threads
 * are loaded first, and then everything is replaced at once.
 */
export class Generations {
  readonly #options: PluginsOptions;
  readonly #root: string;
  readonly #deps: ThreadDeps;
  readonly #live = new Map<string, LivePlugin>();
  readonly #observers: Observers;
  readonly #starts: PlatformStarts;
  readonly #removed: RemovedSubscribers;
  readonly #watch: FolderWatch;
  readonly #ending = new AbortController();
  readonly #changed = new Set<() => void>();
  readonly #supervisor: Supervisor = { restarted: () => this.#restarted(), settle: () => this.#settle() };
  #reported: ReadonlySet<string> = new Set();
  #found: readonly FoundPlugin[] = [];
  #current: Generation;
  #looking: Promise<void> = Promise.resolve();
  #looksWaiting = 0;
  #settling: Promise<void> = Promise.resolve();

  constructor(options: PluginsOptions) {
    const { home, log, timers = processTimers, environment, limits, dispatcher, store } = options;
    this.#options = options;
    this.#root = pluginsFolder(home);
    this.#deps = {
      ...{ home, log, timers, environment: hookEnvironment(environment, home) },
      limits: { ...THREAD_LIMITS, ...limits },
      receive: (plugin, platform, message) => this.#receive(plugin, platform, message),
    };
    this.#observers = new Observers(dispatcher, options, log);
    this.#starts = new PlatformStarts(log);
    this.#removed = new RemovedSubscribers(store, timers, (name) => name.startsWith(subscriberOf('')));
    this.#current = this.#form();
    this.#watch = new FolderWatch(timers, () => void this.look('changed'));
  }

  get current(): Generation {
    return this.#current;
  }

  statuses(): PluginStatus[] {
    return this.#found.map((found) => statusOf(found, this.#liveOf(found), this.#current, this.#options.timeoutMs));
  }

  /** Calls when there may be other tools, commands, providers or platforms than before; the returned function ends it. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  /** Ends every plugin. What was not finished comes again at the next start. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#watch.close();
    await this.#looking;
    await this.#settling;
    await this.#observers.serve([]);
    await this.#starts.keep([]);
    await Promise.all([...this.#live.values()].map((live) => live.close(STOP_GRACE_MS)));
  }

  /** Looks at the folder; one look at a time. */
  look(which: 'changed' | 'all'): Promise<void> {
    // Somebody who only wants to know of changes can share a look that has not begun.
    if (which === 'changed' && this.#looksWaiting > 0) return this.#looking;
    this.#looksWaiting++;
    this.#looking = this.#looking.then(async () => {
      this.#looksWaiting--;
      if (!this.#ending.signal.aborted) await this.#load(which);
    });
    return this.#looking;
  }

  async #load(which: 'changed' | 'all'): Promise<void> {
    try {
      const found = await discoverPlugins(this.#root);
      this.#watch.follow([this.#root, ...found.map(({ folder }) => folder)]);
      const ready = found.filter((plugin): plugin is UsablePlugin => plugin.state === 'ready');
      const fresh = ready.filter((plugin) => which === 'all' || !this.#live.get(plugin.name)?.knows(plugin));
      const loaded = await Promise.all(fresh.map((plugin) => this.#try(plugin)));
      if (this.#ending.signal.aborted) return loaded.forEach(({ thread }) => void thread?.kill('the gateway stops'));
      await this.#swap(found, loaded);
      await this.#removed.tidy(this.#keepers().map(subscriberOf));
    } catch (error) {
      this.#options.log.error('looking for plugins failed; trying again', { error: MoiraiError.wrap(error) });
    }
  }

  async #try(plugin: UsablePlugin): Promise<Attempt> {
    try {
      return { plugin, thread: await PluginThread.load(plugin, this.#deps, this.#ending.signal), error: null };
    } catch (thrown) {
      return { plugin, thread: null, error: MoiraiError.wrap(thrown, 'plugin_invalid') };
    }
  }

  /** From one generation to the next without a moment in between: nothing is awaited before it is formed. */
  async #swap(found: readonly FoundPlugin[], attempts: readonly Attempt[]): Promise<void> {
    const leaving = this.#leaving(found);
    for (const live of leaving) this.#live.delete(live.name);
    const old = attempts.map((attempt) => this.#take(attempt)).filter((thread) => thread !== null);
    this.#found = found;
    if (attempts.length > 0 || leaving.length > 0) this.#replaceGeneration();
    this.#report();
    try {
      await this.#settle();
    } finally {
      for (const thread of old) void thread.retire();
      for (const live of leaving) void live.close();
      for (const { name } of leaving) this.#options.log.info('plugin left', { plugin: name });
    }
  }

  /** Returns the thread that was replaced. */
  #take({ plugin, thread, error }: Attempt): PluginThread | null {
    const { log } = this.#options;
    const live = this.#live.get(plugin.name) ?? new LivePlugin(plugin, this.#deps, this.#supervisor);
    this.#live.set(plugin.name, live);
    if (thread === null) {
      live.refuse(plugin, error);
      return null;
    }
    const old = live.install(plugin, thread);
    log.info(old === null ? 'plugin ready' : 'plugin reloaded', { plugin: plugin.name, ...summaryOf(thread) });
    return old;
  }

  /** Who was removed or turned off. Who only became unreadable stays as it was. */
  #leaving(found: readonly FoundPlugin[]): LivePlugin[] {
    const stays = (live: LivePlugin): boolean =>
      found.some(({ state, name, folder }) =>
        state === 'bad' ? folder === live.plugin.folder : state === 'ready' && name === live.name,
      );
    return [...this.#live.values()].filter((live) => !stays(live));
  }

  #restarted(): void {
    if (this.#ending.signal.aborted) return;
    this.#replaceGeneration();
    this.#report();
    this.#settle().catch((error: unknown) => {
      this.#options.log.error('a plugin could not be served', { error: MoiraiError.wrap(error) });
    });
  }

  #replaceGeneration(): void {
    this.#current = this.#form();
    for (const listener of this.#changed) listener();
  }

  #form(): Generation {
    const plugins = [...this.#live.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return formGeneration(plugins, this.#deps, this.#options.reserved ?? {});
  }

  /** Brings subscriptions and platforms in line with the generation; one after another. */
  #settle(): Promise<void> {
    const settled = this.#settling.then(async () => {
      if (this.#ending.signal.aborted) return;
      await this.#observers.serve([...this.#live.values()]);
      await this.#starts.keep(this.#platformThreads());
    });
    this.#settling = settled.catch(() => undefined); // Whoever asked is told; the next one begins anew.
    return settled;
  }

  #platformThreads(): { thread: PluginThread; name: string }[] {
    return this.#current.platforms.flatMap(({ plugin, name, wanted }) => {
      const thread = this.#live.get(plugin)?.thread ?? null;
      return thread === null || !wanted ? [] : [{ thread, name }];
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

  /** Whose place in the log stays: all who are there, but those who want to hear nothing any more. */
  #keepers(): string[] {
    const deaf = [...this.#live.values()].filter(({ state, offer }) => state !== 'bad' && offer.events.length === 0);
    const names = this.#found.map((found) => this.#liveOf(found)?.name ?? found.name);
    return names.filter((name) => !deaf.some((live) => live.name === name));
  }

  /** Says once what is wrong, and again when it is something else. */
  #report(): void {
    const bad = this.#found.filter((plugin): plugin is BadPlugin => plugin.state === 'bad');
    const complaints = [
      ...bad.map(({ name, problem }) => ({ plugin: name, problem })),
      ...[...this.#current.withheld].flatMap(([plugin, names]) => names.map((problem) => ({ plugin, problem }))),
    ];
    const said = this.#reported;
    this.#reported = new Set(complaints.map((complaint) => JSON.stringify(complaint)));
    for (const complaint of complaints) {
      if (!said.has(JSON.stringify(complaint))) this.#options.log.error('plugin refused', complaint);
    }
  }
}

type Attempt =
  | { readonly plugin: UsablePlugin; readonly thread: PluginThread; readonly error: null }
  | { readonly plugin: UsablePlugin; readonly thread: null; readonly error: MoiraiError };

function summaryOf({ offer }: PluginThread): object {
  const { events, gates, tools, commands, memoryProviders, platforms } = offer;
  const names = (list: readonly { readonly name: string }[]): string[] => list.map(({ name }) => name);
  return {
    ...{ events, gates: gates.map(({ gate }) => gate), tools: names(tools), commands: names(commands) },
    ...{ memory_providers: names(memoryProviders), platforms: names(platforms) },
  };
}
