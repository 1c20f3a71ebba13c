import { constants } from 'node:os';

const HEARD = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface Signals {
  /** The number of the first one that came. */
  readonly caught: number | null;
  forget(): void;
}

/** Hears the signals that ask to leave, so that leaving can be done in order. */
export function listenToSignals(heard: (signal: (typeof HEARD)[number]) => void): Signals {
  let caught: number | null = null;
  const listener = (signal: NodeJS.Signals): void => {
    const known = HEARD.find((name) => name === signal);
    if (known === undefined) return;
    caught ??= constants.signals[known];
    heard(known);
  };
  for (const signal of HEARD) process.on(signal, listener);
  return {
    get caught() {
      return caught;
    },
    forget: () => {
      for (const signal of HEARD) process.off(signal, listener);
    },
  };
}
