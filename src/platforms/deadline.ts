import type { PlatformRuntime } from './platform.ts';

/** Runs a call that ends when the signal does, and after `ms` at the latest. */
export async function withDeadline<T, S extends AbortSignal = AbortSignal>(
  signal: AbortSignal,
  ms: number,
  call: (signal: S) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  return await call(AbortSignal.any([signal, AbortSignal.timeout(ms)]) as S);
}

/** Resolves after `ms`, or when the signal ends it. */
export function pause({ after }: Pick<PlatformRuntime, 'after'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = after(ms, finish);
    signal.addEventListener('abort', finish, { once: true });
    if (signal.aborted) finish();
  });
}
