import type { Mutant } from '../../mutants/mutants.ts';

/** Bugs in what only QQ promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'QQ is told to have what the inbox has not',
    file: 'src/platforms/qq/resume-state.ts',
    find: 'const done = this.#lowWater.begin({ session, seq, self });',
    replace: 'const done = this.#lowWater.begin({ session, seq, self });\n    if (done()) this.#keep();',
    layer: { file: 'test/platforms/qq/websocket.test.ts', titles: 'from what the inbox has, not' },
  },
  {
    name: 'a repeated answer on QQ carries another number',
    file: 'src/platforms/qq/numbers.ts',
    find: 'const attempt = (await this.#refusals.get(key)) ?? 0;\n    const digest',
    replace: 'const attempt = process.hrtime()[1];\n    const digest',
    layer: { file: 'test/platforms/qq/sending.test.ts', titles: 'follows from its key' },
  },
  {
    name: 'an answer that QQ finds too late is given up',
    file: 'src/platforms/qq/failures.ts',
    find: "['expired', null, [40034128, 40034005,",
    replace: "['expired', null, [40034005,",
    layer: { file: 'test/platforms/qq/sending.test.ts', titles: 'came too late is told so, whether' },
  },
  {
    name: 'an old request of QQ is taken again',
    file: 'src/platforms/qq/webhook.ts',
    find: 'if (!isFresh(timestamp, now) ||',
    replace: 'if (now < 0 ||',
    layer: { file: 'test/platforms/qq/webhook.test.ts', titles: 'take for a request of QQ' },
  },
  {
    name: 'the end of a growing answer on QQ that may have arrived is said again',
    file: 'src/platforms/qq/stream.ts',
    find: "note?.isEnding === true && failure.kind === 'unknown'",
    replace: 'false',
    layer: { file: 'test/platforms/qq/streaming.test.ts', titles: 'whose end was not answered is not said again' },
  },
  {
    name: 'the next process answers on QQ under a number that was refused',
    file: 'src/platforms/qq/numbers.ts',
    find: "key: 'refused', read: integerOf",
    replace: "key: 'refused', read: () => null",
    layer: { file: 'test/platforms/qq/sending.test.ts', titles: 'under another number by the next process' },
  },
  {
    name: 'a new session of QQ is kept only after a while',
    file: 'src/platforms/qq/resume-state.ts',
    find: 'void this.#cursor.flush();',
    replace: '',
    layer: { file: 'test/platforms/qq/websocket.test.ts', titles: 'known to the next process from its beginning' },
  },
];
