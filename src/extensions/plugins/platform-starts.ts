import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { ExtensionProcess } from '../host/extension-process.ts';

export interface Started {
  readonly process: ExtensionProcess;
  readonly plugin: string;
  readonly name: string;
}

const STOP_MS = 3000;

/** Keeps the platforms of plugins started: each in one process at a time, for two that poll one account disturb each other. */
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
    const { process, plugin, name } = one;
    const abort = new AbortController();
    this.#started.set(one, abort);
    // No deadline: a platform may listen for as long as this goes on.
    process.call({ what: 'platform_start', name }, { signal: abort.signal }).catch((thrown: unknown) => {
      if (abort.signal.aborted || process.isGone) return;
      // Started again with everything else, after a pause that grows.
      process.kill(`could not start its platform ${name}: ${MoiraiError.wrap(thrown).message}`);
    });
    this.#log.info('platform of a plugin started', { plugin, platform: name });
  }

  async #stop(one: Started): Promise<void> {
    const { process, plugin, name } = one;
    this.#started.get(one)?.abort();
    this.#started.delete(one);
    if (process.isGone) return;
    try {
      await process.call({ what: 'platform_stop', name }, { timeoutMs: STOP_MS });
    } catch (thrown) {
      // Its process ends soon, and the platform with it.
      const error = MoiraiError.wrap(thrown).message;
      this.#log.warn('platform of a plugin did not stop', { plugin, platform: name, error });
    }
  }
}

function isSame(a: Started, b: Started): boolean {
  return a.process === b.process && a.name === b.name;
}
