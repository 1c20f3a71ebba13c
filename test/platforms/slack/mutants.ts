import type { Mutant } from '../../mutants/mutants.ts';

/** Bugs in what only Slack promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an envelope of Slack is acknowledged before the inbox has it',
    file: 'src/platforms/slack/session.ts',
    find: 'return (await this.#reception.takeInTime(parsed)) ? NOTHING : null;',
    replace: 'return void this.#reception.takeInTime(parsed) ?? NOTHING;',
    layer: { file: 'test/platforms/slack/socket.test.ts', titles: 'never before the inbox has written' },
  },
  {
    name: 'a request that Slack has signed is taken as often as it comes',
    file: 'src/platforms/slack/webhook.ts',
    find: 'if (!isSame(signature, own) || this.#taken.has(signature)) return false;',
    replace: 'if (!isSame(signature, own)) return false;',
    layer: { file: 'test/platforms/slack/http.test.ts', titles: 'comes again to the byte' },
  },
  {
    name: 'what was added to a stream of Slack without an answer counts as there',
    file: 'src/platforms/slack/stream.ts',
    find: 'Object.assign(shown, { text: wanted, isOther: true });',
    replace: 'Object.assign(shown, { text: wanted });',
    layer: { file: 'test/platforms/slack/streaming.test.ts', titles: 'last addition' },
  },
  {
    name: 'what was said while nobody was connected to Slack is not asked for',
    file: 'src/platforms/slack/connecting.ts',
    find: 'if (old?.isOpen !== true) gap();',
    replace: 'if (old?.isOpen === true) gap();',
    layer: { file: 'test/platforms/slack/backfill.test.ts', titles: 'what was missed' },
  },
  {
    name: 'what was said while Slack was away is given up after some seconds',
    file: 'src/platforms/slack/backfill.ts',
    find: 'const MORE_TRIES = 40;',
    replace: 'const MORE_TRIES = 5;',
    layer: { file: 'test/platforms/slack/backfill.test.ts', titles: 'also when that takes minutes' },
  },
];
