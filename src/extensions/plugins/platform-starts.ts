import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { PluginThread } from './plugin-thread.ts';

interface Started {
  readonly thread: PluginThread;
  readonly name: string;
}

const STOP_MS = 3000;

/** Keeps the platforms of plugins started: each in one thread at a time, for two that poll one account disturb each other. */
export class PlatformStarts {
  readonly #log: Logger;
  readonly #started = new Map<Started, AbortController>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Stops what is started and not wanted, and only then starts what is wanted. */
  async keep(wanted: readonly Started[]): Promise<void> {
    const unwanted = [...this.#started.keys()].filter((one) => !wanted.some((other) => isSame(one, other)));
    await Promise.all(unwanted.map((one) => this.#stop(one)));
    const running = [...this.#started.keys()];
    for (const one of wanted) if (!running.some((other) => isSame(one, other))) this.#start(one);
  }

  #start(one: Started): void {
    const { thread, name } = one;
    const abort = new AbortController();
    this.#started.set(one, abort);
    // No deadline: a platform may listen for as long as this goes on.
    thread.call({ what: 'platform_start', name }, { signal: abort.signal }).catch((thrown: unknown) => {
      if (abort.signal.aborted || thread.isGone) return;
      // Started again with everything else, after a pause that grows.
      thread.kill(`its platform ${name} failed: ${MoiraiError.wrap(thrown).message}`);
    });
    this.#log.info('platform of a plugin started', { plugin: thread.plugin.name, platform: name });
  }

  async #stop(one: Started): Promise<void> {
    const { thread, name } = one;
    this.#started.get(one)?.abort();
    this.#started.delete(one);
    if (thread.isGone) return;
    try {
      await thread.call({ what: 'platform_stop', name }, { timeoutMs: STOP_MS });
    } catch (thrown) {
      // Its thread ends soon, and the platform with it.
      const error = MoiraiError.wrap(thrown).message;
      this.#log.warn('platform of a plugin did not stop', { plugin: thread.plugin.name, platform: name, error });
    }
  }
}

function isSame(a: Started, b: Started): boolean {
  return a.thread === b.thread && a.name === b.name;
}
