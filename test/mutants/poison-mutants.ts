import type { Mutant } from './mutants.ts';

/** Deliberate bugs in texts, rows and files that cannot be processed. */
export const POISON_MUTANTS: readonly Mutant[] = [];
