import { test } from 'vitest';
import { RUN_ALL } from './share.ts';

/** A test of the full run: one that takes long, beside others of its kind that do not. */
export const testInFullRun = test.runIf(RUN_ALL);

/** Some of the cases of one test, all of them in the full run. */
export function someOf<T>(all: readonly T[], isShort: (each: T, index: number) => boolean): T[] {
  return all.filter((each, index) => RUN_ALL || isShort(each, index));
}
