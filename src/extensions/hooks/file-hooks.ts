import { join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Dispatcher } from '../../events/dispatcher.ts';
import { RemovedSubscribers } from '../../events/removed-subscribers.ts';
import type { Logger } from '../../log/logger.ts';
import { processTimers, type Timers } from '../../queue/timers.ts';
import type { Store } from '../../store/port.ts';
import { hookEnvironment, USUAL_PATH } from '../host/environment.ts';
import { FolderWatch } from '../host/folder-watch.ts';
import { type BadHook, discoverHooks, type FoundHook, type UsableHook } from './discover.ts';
import type { Handler } from './handler.ts';
import { HandlerHost } from './handler-host.ts';
import { LiveHook } from './live-hook.ts';
import { LOAD_MS } from './loaded-handler.ts';
import { IMPATIENT_MS, MOST_WORKERS } from './worker-pool.ts';

export interface FileHooksOptions {
  readonly home: string;
  readonly dispatcher: Dispatcher;
  readonly store: Store;
  readonly config: { readonly timeoutMs: number; readonly maxAttempts: number };
  readonly log: Logger;
  /** The gateway's own; handlers get the harmless part of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly timers?: Timers;
}

export interface HookStatus {
  readonly name: string;
  readonly folder: string;
  /** `resting`: it failed again and again, and is tried from time to time. */
  readonly state: 'ready' | 'resting' | 'disabled' | 'bad';
  readonly problem: string | null;
  readonly description: string | null;
  readonly events: readonly string[];
  readonly timeoutMs: number;
  readonly handler: string | null;
  readonly processes: number;
  readonly handled: number;
  readonly failed: number;
  readonly lastError: string | null;
}

/** The handler's own deadline comes first; this one is for what must not happen. */
const MARGIN_MS = 5000;

/** The folder that hooks are in. */
export function hooksFolder(home: string): string {
  return join(home, 'hooks');
}

/** The hooks in `<home>/hooks`, each a subscriber of the log, run outside this process and loaded again on change. */
export class FileHooks {
  readonly #options: FileHooksOptions;
  readonly #timers: Timers;
  readonly #root: string;
  readonly #environment: Record<string, string>;
  readonly #host = new HandlerHost();
  readonly #live = new Map<string, LiveHook>();
  readonly #reported = new Map<string, string>();
  readonly #watch: FolderWatch;
  readonly #removed: RemovedSubscribers;
  #found: readonly FoundHook[] = [];
  #scanning: Promise<void> = Promise.resolve();
  #scansWaiting = 0;
  #stopped = false;

  private constructor(options: FileHooksOptions) {
    this.#options = options;
    this.#timers = options.timers ?? processTimers;
    this.#root = hooksFolder(options.home);
    this.#environment = hookEnvironment(options.environment, options.home);
    this.#removed = new RemovedSubscribers(options.store, this.#timers, (name) => name.startsWith('hook:'));
    this.#watch = new FolderWatch(this.#timers, () => void this.#scan());
  }

  /** Subscribes every usable hook. A hook that cannot be used is reported, and stops nobody. */
  static async start(options: FileHooksOptions): Promise<FileHooks> {
    const hooks = new FileHooks(options);
    await hooks.#scan();
    return hooks;
  }

  list(): HookStatus[] {
    return this.#found.map((found) => {
      const live = found.state === 'bad' ? undefined : this.#live.get(found.name);
      return statusOf(found, live, this.#options.config.timeoutMs);
    });
  }

  /** Stops listening and ends every handler. What was not finished comes again at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#watch.close();
    await this.#scanning;
    await Promise.all([...this.#live.keys()].map((name) => this.#leave(name)));
    await this.#host.stop();
  }

  /** Looks at the folder; one look at a time, and never more than one waiting. */
  #scan(): Promise<void> {
    if (this.#scansWaiting === 0) {
      this.#scansWaiting++;
      this.#scanning = this.#scanning.then(() => {
        this.#scansWaiting--;
        return this.#look();
      });
    }
    return this.#scanning;
  }

  async #look(): Promise<void> {
    if (this.#stopped) return;
    try {
      this.#found = await discoverHooks(this.#root, this.#environment.PATH ?? USUAL_PATH);
      this.#watch.follow([this.#root, ...this.#found.map(({ folder }) => folder)]);
      const ready = this.#found.filter((hook): hook is UsableHook => hook.state === 'ready');
      const names = ready.map(({ name }) => name);
      for (const name of this.#live.keys()) if (!names.includes(name)) await this.#leave(name);
      for (const hook of ready) await this.#admit(hook);
      this.#report(this.#found.filter((hook): hook is BadHook => hook.state === 'bad'));
      await this.#removed.tidy(this.#found.map(({ name }) => `hook:${name}`));
    } catch (error) {
      this.#options.log.error('looking for hooks failed; trying again', { error: MoiraiError.wrap(error) });
    }
  }

  async #admit(hook: UsableHook): Promise<void> {
    const live = this.#live.get(hook.name);
    if (live?.hook.fingerprint === hook.fingerprint) return;
    const { log } = this.#options;
    if (live === undefined) {
      const fresh = new LiveHook(hook, this.#handlerOf(hook), this.#timers, log.child({ hook: hook.name }));
      await this.#subscribe(fresh);
      this.#live.set(hook.name, fresh);
      log.info('hook ready', { hook: hook.name, events: hook.manifest.events });
      return;
    }
    const before = live.hook.manifest;
    live.replace(hook, this.#handlerOf(hook));
    const { events, timeoutMs } = hook.manifest;
    if (before.timeoutMs !== timeoutMs || before.events.join() !== events.join()) await this.#subscribe(live);
    log.info('hook reloaded', { hook: hook.name, events });
  }

  async #subscribe(live: LiveHook): Promise<void> {
    const { name, manifest } = live.hook;
    const { dispatcher, config } = this.#options;
    const timeoutMs = (manifest.timeoutMs ?? config.timeoutMs) + LOAD_MS + IMPATIENT_MS + MARGIN_MS;
    await dispatcher.subscribe({
      ...{ name: subscriberOf(name), events: manifest.events, from: 'now' },
      ...{ timeoutMs, maxAttempts: config.maxAttempts, concurrency: MOST_WORKERS },
      handle: (event, signal) => live.handle(event, signal),
      capacity: () => live.capacity(MOST_WORKERS),
    });
  }

  #handlerOf({ name, folder, manifest, handler }: UsableHook): Handler {
    const { config, log } = this.#options;
    const timeoutMs = manifest.timeoutMs ?? config.timeoutMs;
    const facts = { name, folder, timeoutMs, environment: this.#environment };
    return this.#host.make(handler, facts, log.child({ hook: name }));
  }

  /** Its place in the log stays: it goes on there when it comes back. */
  async #leave(name: string): Promise<void> {
    const live = this.#live.get(name);
    this.#live.delete(name);
    await this.#options.dispatcher.leave(subscriberOf(name));
    await live?.close();
    if (!this.#stopped) this.#options.log.info('hook left', { hook: name });
  }

  /** Says once what is wrong with a hook, and again when it is something else. */
  #report(bad: readonly BadHook[]): void {
    const said = new Map(bad.map(({ folder, problem }) => [folder, problem]));
    for (const { name, folder, problem } of bad) {
      if (this.#reported.get(folder) !== problem) this.#options.log.error('hook refused', { hook: name, problem });
    }
    this.#reported.clear();
    for (const [folder, problem] of said) this.#reported.set(folder, problem);
  }
}

/** The name under which a hook is in the store. */
export function subscriberOf(hook: string): string {
  return `hook:${hook}`;
}

function statusOf(found: FoundHook, live: LiveHook | undefined, timeoutMs: number): HookStatus {
  const { name, folder, state } = found;
  const record = live?.record ?? { handled: 0, failed: 0, lastError: null };
  const common = { name, folder, processes: live?.processes ?? 0, ...record };
  if (found.state === 'bad') {
    return { ...common, state, problem: found.problem, description: null, events: [], timeoutMs, handler: null };
  }
  const { description, events } = found.manifest;
  return {
    ...{ ...common, description, events, timeoutMs: found.manifest.timeoutMs ?? timeoutMs },
    ...{ state: live?.resting ? 'resting' : state, problem: null, handler: found.handler.file },
  };
}
