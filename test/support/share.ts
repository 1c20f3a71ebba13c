/** Whether everything runs: the whole of each long proof, and a part that this machine lacks is a failure. */
export const RUN_ALL = process.env.MOIRAI_TEST_ALL === '1';

/** How much of a long proof is run: a small share by default, the whole of it with MOIRAI_TEST_ALL=1. */
export function share(small: number, whole: number): number {
  return RUN_ALL ? whole : small;
}
