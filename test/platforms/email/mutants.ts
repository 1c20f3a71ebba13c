import type { Mutant } from '../../mutants/mutants.ts';

const FOLDER = 'test/platforms/email';

/** Bugs in what Email promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'Email believes whatever result stands in a mail',
    file: 'src/platforms/email/trust.ts',
    find: 'const own = results.find(({ authserv }) => authserv === authservId);',
    replace: 'const own = results.findLast(({ authserv }) => authserv === authservId);',
    layer: { file: `${FOLDER}/trust.test.ts`, titles: 'below the one of our server' },
  },
  {
    name: 'Email answers programs',
    file: 'src/platforms/email/automatic.ts',
    find: "if (fields.has('auto-submitted') && firstWord('auto-submitted') !== 'no') return 'Auto-Submitted';",
    replace: '',
    layer: { file: `${FOLDER}/parse.test.ts`, titles: 'A notice of a program' },
  },
  {
    name: 'Email goes on behind a mail that was not taken',
    file: 'src/platforms/email/position.ts',
    find: 'const done = water.begin(uid);',
    replace: 'const done = () => (this.#uid = uid) > 0;',
    layer: { file: `${FOLDER}/resuming.test.ts`, titles: 'does not pass a mail' },
  },
  {
    name: 'Email takes mails again when the mailbox has other numbers',
    file: 'src/platforms/email/intake.ts',
    find: 'if (uid <= this.#renumbered && this.#position.hasSeen(head.id)) return leaveOut();',
    replace: '',
    layer: { file: `${FOLDER}/resuming.test.ts`, titles: 'is known by its id' },
  },
  {
    name: 'Email sends a mail whose reader is refused to its own mailbox, as if it were sent',
    file: 'src/platforms/email/send.ts',
    find: 'outcome.refused = refusalOf(connection, envelope.from);',
    replace: '',
    layer: { file: `${FOLDER}/sending.test.ts`, titles: 'leaves no copy' },
  },
  {
    name: 'Email leaves out a quote of a mail that nobody was given',
    file: 'src/platforms/email/intake.ts',
    find: 'this.#position.hasTaken(id)',
    replace: 'this.#position.hasSeen(id)',
    layer: { file: `${FOLDER}/quoting.test.ts`, titles: 'that a program wrote' },
  },
  {
    name: 'Email takes a mail that is gone for an empty one',
    file: 'src/platforms/email/fetching.ts',
    find: 'if (!mail) return null;\n  for',
    replace: 'if (!mail) return found;\n  for',
    layer: { file: `${FOLDER}/reading.test.ts`, titles: 'while it is read is no message' },
  },
  {
    name: 'Email takes what waited for a week for the work of a program',
    file: 'src/platforms/email/exchange-guard.ts',
    find: 'before > at - WINDOW_MS',
    replace: 'before > 0',
    layer: { file: `${FOLDER}/loops.test.ts`, titles: 'was not written in one hour' },
  },
];
