import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { createLogger } from '../../log/logger.ts';
import { hookEnvironment } from '../host/environment.ts';
import { ExtensionHost, type LineSink } from '../host/extension-host.ts';
import type { UsableHook } from './hook-kind.ts';
import { makeHandler } from './live-hook.ts';

export interface Trial {
  /** From the start of its process, loading included, until it was done. */
  readonly ms: number;
  readonly error: MoiraiError | null;
}

/** Runs a hook's handler once, beside any gateway: nothing is recorded, and nothing is tried again. */
export async function tryHook(
  hook: UsableHook,
  event: MoiraiEvent,
  { home, timeoutMs, ...options }: { home: string; timeoutMs: number; environment: NodeJS.ProcessEnv; sink: LineSink },
): Promise<Trial> {
  const host = new ExtensionHost(createLogger({ level: 'silent', format: 'json' }));
  const environment = hookEnvironment(options.environment, home);
  const handler = makeHandler(hook, { host, environment, timeoutMs, sink: options.sink });
  const start = performance.now();
  try {
    const error = await handler.run(event, new AbortController().signal).then(
      () => null,
      (thrown: unknown) => MoiraiError.wrap(thrown, 'subscriber_failed'),
    );
    const ms = Math.round(performance.now() - start);
    // What it said last is read before its processes are gone.
    await host.wait(handler.retire());
    return { ms, error };
  } finally {
    await handler.close();
    await host.stop();
  }
}
