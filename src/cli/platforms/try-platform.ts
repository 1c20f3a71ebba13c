import { MoiraiError } from '../../errors/moirai-error.ts';
import { type Platform, type PlatformRuntime, SendFailure } from '../../platforms/platform.ts';
import { processTimers } from '../../queue/timers.ts';

const PATIENCE_MS = 20_000;

/** A runtime for asking a server who we are: nothing is kept, and nothing is received. */
export function tryingRuntime(name: string): PlatformRuntime {
  return {
    name,
    keep: async () => undefined,
    recall: async () => null,
    now: Date.now,
    random: Math.random,
    after: (ms, callback) => processTimers.after(ms, callback),
    warn: () => undefined,
  };
}

/** Who the server says we are, in its words. Throws `platform_refused` and `platform_unreachable`. */
export async function identify(platform: Platform): Promise<string> {
  try {
    return (await platform.identify?.(AbortSignal.timeout(PATIENCE_MS))) ?? 'it cannot be asked who it is';
  } catch (thrown) {
    const { message } = thrown instanceof Error ? thrown : { message: String(thrown) };
    const isAway = !(thrown instanceof SendFailure) || thrown.kind === 'transient' || thrown.kind === 'uncertain';
    throw new MoiraiError(isAway ? 'platform_unreachable' : 'platform_refused', `${platform.name}: ${message}`, {
      cause: thrown,
    });
  }
}
