import type { Dispatcher } from '../../events/dispatcher.ts';
import { RemovedSubscribers } from '../../events/removed-subscribers.ts';
import type { Logger } from '../../log/logger.ts';
import { processTimers, type Timers } from '../../queue/timers.ts';
import type { Store } from '../../store/port.ts';
import { hookEnvironment, USUAL_PATH } from '../host/environment.ts';
import { ExtensionFolder } from '../host/extension-folder.ts';
import type { ExtensionHost } from '../host/extension-host.ts';
import type { Handler } from './handler.ts';
import { IMPATIENT_MS, LOAD_MS, MOST_PROCESSES } from './handler-pool.ts';
import {
  type FoundHook,
  type HandlerFile,
  type HookManifest,
  hookKind,
  hooksFolder,
  type UsableHook,
} from './hook-kind.ts';
import { LiveHook } from './live-hook.ts';
import { makeHandler } from './make-handler.ts';

export interface FileHooksOptions {
  readonly home: string;
  /** Runs their processes. */
  readonly host: ExtensionHost;
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

/** The hooks in `<home>/hooks`, each a subscriber of the log, run outside this process and loaded again on change. */
export class FileHooks {
  readonly #options: FileHooksOptions;
  readonly #timers: Timers;
  readonly #environment: Record<string, string>;
  readonly #live = new Map<string, LiveHook>();
  readonly #folder: ExtensionFolder<HookManifest, { readonly handler: HandlerFile }>;
  readonly #removed: RemovedSubscribers;
  #found: readonly FoundHook[] = [];
  #stopped = false;

  private constructor(options: FileHooksOptions) {
    const { home, environment, store, log, timers = processTimers } = options;
    this.#options = options;
    this.#timers = timers;
    this.#environment = hookEnvironment(environment, home);
    this.#removed = new RemovedSubscribers(store, timers, (name) => name.startsWith('hook:'));
    this.#folder = new ExtensionFolder({
      ...{ root: hooksFolder(home), kind: hookKind(this.#environment.PATH ?? USUAL_PATH), timers, log },
      apply: (found) => this.#apply(found),
    });
  }

  /** Subscribes every usable hook; runs none. A hook that cannot be used is reported, and stops nothing. */
  static async start(options: FileHooksOptions): Promise<FileHooks> {
    const hooks = new FileHooks(options);
    await hooks.#folder.look();
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
    await this.#folder.close();
    await Promise.all([...this.#live.keys()].map((name) => this.#leave(name)));
  }

  async #apply(found: readonly FoundHook[]): Promise<void> {
    this.#found = found;
    const ready = found.filter((hook): hook is UsableHook => hook.state === 'ready');
    const names = ready.map(({ name }) => name);
    for (const name of this.#live.keys()) if (!names.includes(name)) await this.#leave(name);
    for (const hook of ready) await this.#admit(hook);
    await this.#removed.tidy(found.map(({ name }) => subscriberOf(name)));
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
      ...{ timeoutMs, maxAttempts: config.maxAttempts, concurrency: MOST_PROCESSES },
      handle: (event, signal) => live.handle(event, signal),
      capacity: () => live.capacity(MOST_PROCESSES),
    });
  }

  #handlerOf({ name, folder, manifest, handler }: UsableHook): Handler {
    const { config, host } = this.#options;
    const timeoutMs = manifest.timeoutMs ?? config.timeoutMs;
    return makeHandler(handler, {
      name,
      folder,
      timeoutMs,
      environment: this.#environment,
      host,
      timers: this.#timers,
    });
  }

  /** Its place in the log stays: it goes on there when it comes back. */
  async #leave(name: string): Promise<void> {
    const live = this.#live.get(name);
    this.#live.delete(name);
    await this.#options.dispatcher.leave(subscriberOf(name));
    await live?.close();
    if (!this.#stopped) this.#options.log.info('hook left', { hook: name });
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
