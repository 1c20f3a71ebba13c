import type { Mutant } from './mutants.ts';

/** Deliberate bugs in a store in trouble. */
export const STORE_MUTANTS: readonly Mutant[] = [];
