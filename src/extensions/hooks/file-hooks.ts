import { hookEnvironment, USUAL_PATH } from '../host/environment.ts';
import { ExtensionFolder } from '../host/extension-folder.ts';
import { type ExtensionOptions, ExtensionRecord, Subscriptions } from '../host/subscriptions.ts';
import type { HookDeps } from './handler.ts';
import { type FoundHook, type HookFiles, hookKind, type UsableHook } from './hook-kind.ts';
import { LiveHook } from './live-hook.ts';

/** How a hook is, for people. */
interface HookStatus extends Pick<ExtensionRecord, 'handled' | 'failed' | 'lastError'> {
  readonly name: string;
  /** `resting`: it failed again and again, and is tried from time to time. */
  readonly state: 'ready' | 'resting' | 'disabled' | 'bad';
  readonly problem: string | null;
  readonly processes: number;
}

/** The hooks in `<home>/hooks`, each a subscriber of the log, run outside this process and loaded again on change. */
export class FileHooks {
  readonly #options: ExtensionOptions;
  readonly #deps: HookDeps;
  readonly #live = new Map<string, LiveHook>();
  readonly #subscriptions: Subscriptions;
  readonly #folder: ExtensionFolder<HookFiles>;
  #found: readonly FoundHook[] = [];

  private constructor(options: ExtensionOptions) {
    const { home, host, timeoutMs } = options;
    const environment = hookEnvironment(options.environment, home);
    const kind = hookKind(environment.PATH ?? USUAL_PATH);
    this.#options = options;
    this.#deps = { host, environment, timeoutMs };
    this.#subscriptions = new Subscriptions(kind.word, options);
    this.#folder = new ExtensionFolder(kind, options, (found) => this.#apply(found));
  }

  /** Subscribes every usable hook; runs none. A hook that cannot be used is reported, and stops nothing. */
  static async start(options: ExtensionOptions): Promise<FileHooks> {
    const hooks = new FileHooks(options);
    await hooks.#folder.look();
    return hooks;
  }

  list(): HookStatus[] {
    return this.#found.map((found) => {
      const live = found.state === 'bad' ? undefined : this.#live.get(found.name);
      return {
        name: found.name,
        state: live?.resting ? 'resting' : found.state,
        problem: found.state === 'bad' ? found.problem : null,
        processes: live?.processes ?? 0,
        ...(live?.record ?? new ExtensionRecord()),
      };
    });
  }

  /** Stops listening and ends every handler. What was not finished comes again at the next start. */
  async stop(): Promise<void> {
    await this.#folder.close();
    await this.#subscriptions.serve([]);
    await Promise.all([...this.#live.values()].map((live) => live.close()));
  }

  async #apply(found: readonly FoundHook[]): Promise<void> {
    this.#found = found;
    const ready = found.filter((hook): hook is UsableHook => hook.state === 'ready');
    const leaving = [...this.#live.values()].filter(({ name }) => !ready.some((hook) => hook.name === name));
    for (const { name } of leaving) this.#live.delete(name);
    for (const hook of ready) this.#admit(hook);
    await this.#subscriptions.serve([...this.#live.values()]);
    for (const live of leaving) {
      await live.close();
      this.#options.log.info('hook left', { hook: live.name });
    }
    await this.#subscriptions.tidy(found.map(({ name }) => name));
  }

  #admit(hook: UsableHook): void {
    const live = this.#live.get(hook.name);
    if (live?.knows(hook)) return;
    const { log } = this.#options;
    if (live === undefined) this.#live.set(hook.name, new LiveHook(hook, this.#deps, log));
    else live.use(hook);
    log.info(live === undefined ? 'hook ready' : 'hook reloaded', { hook: hook.name, events: hook.manifest.events });
  }
}
