/** Time as loops see it. Injected, so that a simulation can run hours in a moment, and the same ones again. */
export interface Timers {
  /** Milliseconds on a clock that never goes back; only differences mean something. */
  elapsed(): number;
  /** Calls back once after `ms`; the returned function cancels. */
  after(ms: number, callback: () => void): () => void;
}

/** The process's own timers. They never keep a process alive by themselves. */
export const processTimers: Timers = {
  elapsed: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, 2 ** 31 - 1));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Does something now and then again, `pauseMs` after it was done or failed. The returned function stops that. */
export function repeat(
  timers: Timers,
  pauseMs: number,
  action: () => Promise<void>,
  failed: (error: unknown) => void,
): () => void {
  let stopped = false;
  let cancel = (): void => undefined;
  const again = (): void => {
    action()
      .catch(failed)
      .finally(() => {
        if (!stopped) cancel = timers.after(pauseMs, again);
      });
  };
  again();
  return () => {
    stopped = true;
    cancel();
  };
}
