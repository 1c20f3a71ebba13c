import type { Mutant } from './mutants.ts';

/** Deliberate bugs in sentences that must come true. */
export const SENTENCE_MUTANTS: readonly Mutant[] = [];
