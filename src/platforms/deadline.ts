import type { PlatformRuntime } from './platform.ts';

/** Runs a call that ends when the signal does, and after `ms` at the latest. Nothing of it is left behind once it is over. */
export async function withDeadline<T, S extends AbortSignal = AbortSignal>(
  signal: AbortSignal,
  ms: number,
  call: (signal: S) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  // Not `AbortSignal.any` and `AbortSignal.timeout`, which keep what a finished call held until its time is over.
  const ended = new AbortController();
  const end = () => ended.abort(signal.reason);
  const timer = setTimeout(() => ended.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')), ms);
  timer.unref();
  signal.addEventListener('abort', end, { once: true });
  try {
    return await call(ended.signal as S);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
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
