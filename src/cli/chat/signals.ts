import { constants } from 'node:os';

const HEARD = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Hears the signals that ask to leave, so that leaving can be done in order; each comes with the code to exit with then.
 * Returns the function that stops listening.
 */
export function listenToSignals(onSignal: (signal: NodeJS.Signals, exitCode: number) => void): () => void {
  const listener = (signal: NodeJS.Signals): void => onSignal(signal, 128 + constants.signals[signal]);
  for (const signal of HEARD) process.on(signal, listener);
  return () => {
    for (const signal of HEARD) process.off(signal, listener);
  };
}
