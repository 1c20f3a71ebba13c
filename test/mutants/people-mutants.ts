import type { Mutant } from './mutants.ts';

/** Deliberate bugs in people who are kept apart. */
export const PEOPLE_MUTANTS: readonly Mutant[] = [];
