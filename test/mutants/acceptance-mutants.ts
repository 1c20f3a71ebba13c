import type { Mutant } from './mutants.ts';

/** Deliberate bugs in what is accepted once and answered once. */
export const ACCEPTANCE_MUTANTS: readonly Mutant[] = [];
