import type { Mutant } from './mutants.ts';

/** Deliberate bugs in people who are kept apart. */
export const PEOPLE_MUTANTS: readonly Mutant[] = [
  {
    name: 'who has the same id on another platform answers what was asked of another',
    file: 'src/people/access.ts',
    find: 'by.person !== askedOf) return',
    replace: "by.person.split(':').at(-1) !== askedOf?.split(':').at(-1)) return",
    layer: { file: 'src/people/access.test.ts', titles: 'nobody else answers' },
  },
  {
    name: 'whoever holds a key answers for the people of another key',
    file: 'src/lifecycle/namespace.ts',
    find: 'return isNamedByKey ? `${scope}:${userId}` : userId;',
    replace: 'return isNamedByKey ? userId : userId;',
    layer: { file: 'test/gateway/api-backend.test.ts', titles: 'whoever holds a key answers for nobody' },
  },
];
