import type { Mutant } from '../../mutants/mutants.ts';

const CHAT = 'test/platforms/chat-sdk/chat.test.ts';

/** Bugs in what the bridge to adapters of the Chat SDK promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an adapter answers before the inbox has what it brought',
    file: 'src/platforms/chat-sdk/requests.ts',
    find: 'while (scope.tasks.size > 0 && !scope.failed)',
    replace: 'while (scope.tasks.size < 0)',
    layer: { file: CHAT, titles: 'did not wait for' },
  },
  {
    name: 'what an adapter has seen stays seen when the inbox could not take it',
    file: 'src/platforms/chat-sdk/state.ts',
    find: '(await claim.by.outcome)',
    replace: 'claim.value !== undefined',
    layer: { file: CHAT, titles: 'is new again' },
  },
  {
    name: 'a piece of a message that an adapter puts together is acknowledged alone',
    file: 'src/platforms/chat-sdk/requests.ts',
    find: 'if (outcomes.includes(false)) scope.failed = true;',
    replace: '',
    layer: { file: CHAT, titles: 'fails with the one' },
  },
  {
    name: 'an adapter that nobody knows is expected to do everything',
    file: 'src/platforms/chat-sdk/abilities.ts',
    find: 'Object.hasOwn(KNOWN, name) ? (KNOWN[name] as Known) : { can: [] }',
    replace: "KNOWN['@chat-adapter/teams'] as Known",
    layer: { file: 'test/platforms/chat-sdk/load.test.ts', titles: 'where nothing is known' },
  },
];
