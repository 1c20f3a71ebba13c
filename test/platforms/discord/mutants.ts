import type { Mutant } from '../../mutants/mutants.ts';

const SESSION = 'test/platforms/discord/session.test.ts';
const INTERACTIONS = 'test/platforms/discord/interactions.test.ts';
const FORUM = 'test/platforms/discord/forum.test.ts';
const SENDING = 'test/platforms/discord/sending.test.ts';

/** Bugs in what Discord promises by itself. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'Discord: a position is passed before the inbox has the message',
    file: 'src/platforms/discord/gateway.ts',
    find: 'const done = live.water.begin(position);',
    replace: 'const done = live.water.begin(position);\n    this.#advance(live, done);',
    layer: { file: SESSION, titles: 'stays before the first message that is not taken' },
  },
  {
    name: 'Discord: a new session is kept before what was missed is durable',
    file: 'src/platforms/discord/gateway.ts',
    find: 'kept.moveTo({ session: null, completeAt: this.#completeAt });',
    replace: 'this.#keep(live);',
    layer: { file: SESSION, titles: 'begins anew and asks for it' },
  },
  {
    name: 'Discord: a command is acknowledged in its turn',
    file: 'src/platforms/discord/reception.ts',
    find: 'const acknowledged = interactions.acknowledge(interaction, parsed.kind, self.application);',
    replace: `const acknowledged = this.#queues.run(snowflakeOf(fields.channel_id) ?? '', () =>
      interactions.acknowledge(interaction, parsed.kind, self.application),
    );`,
    layer: { file: INTERACTIONS, titles: 'a command is acknowledged within three seconds while the inbox' },
  },
  {
    name: 'Discord: the key of a message is not looked at by the server',
    file: 'src/platforms/discord/message-body.ts',
    find: 'enforce_nonce: true',
    replace: 'enforce_nonce: false',
    layer: { file: SENDING, titles: 'the same at every attempt' },
  },
  {
    name: 'Discord: only this process knows which posts it tried to open',
    file: 'src/platforms/discord/openings.ts',
    find: 'await this.#keep(known);',
    replace: '',
    layer: { file: FORUM, titles: 'also by the process after the one that was killed' },
  },
  {
    name: 'Discord: only what follows first goes into a post that was opened',
    file: 'src/outbound/platform-sender.ts',
    find: 'const at = before?.place ?? place;',
    replace: 'const at = before?.last.place ?? place;',
    layer: { file: FORUM, titles: 'the agent opens one post' },
  },
  {
    name: 'Discord: what is too much for one second is refused',
    file: 'src/platforms/discord/api.ts',
    find: '!global || timeToReset > PATIENT_MS',
    replace: '!global || timeToReset > 0',
    layer: { file: SENDING, titles: 'delay a crowd' },
  },
  {
    name: 'Discord: answers to commands wait behind a crowd',
    file: 'src/platforms/discord/api.ts',
    find: 'auth ? this.#rest : this.#answers',
    replace: 'auth ? this.#rest : this.#rest',
    layer: { file: INTERACTIONS, titles: 'while messages wait for the next second' },
  },
];
