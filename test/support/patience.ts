import { availableParallelism, loadavg } from 'node:os';

/** A time that a machine with nothing else to do keeps; a busy one gets more. */
export function patience(ms: number): number {
  const [load = 0] = loadavg();
  return ms * Math.max(1, load / availableParallelism());
}
