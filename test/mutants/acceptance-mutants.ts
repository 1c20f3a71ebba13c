import type { Mutant } from './mutants.ts';

const OPENAI_CLIENT = 'test/gateway/openai-client.test.ts';
const API_BACKEND = 'test/gateway/api-backend.test.ts';
const REPEATED_COMMANDS = 'test/gateway/repeated-commands.test.ts';
const MOVED_CHATS = 'test/gateway/moved-chats.test.ts';
const TWO_GATEWAYS = 'test/gateway/two-gateways.test.ts';

/** Deliberate bugs in what is accepted once and answered once. */
export const ACCEPTANCE_MUTANTS: readonly Mutant[] = [
  {
    name: 'a client whose turn is interrupted is told that nothing was taken',
    file: 'src/gateway/api-backend.ts',
    find: "new MoiraiError('turn_interrupted', `the gateway stops;",
    replace: "new MoiraiError('draining', `the gateway stops;",
    layer: { file: OPENAI_CLIENT, titles: 'a lasting conversation that goes on after a stop' },
  },
  {
    name: 'a client says again by itself what goes on after a stop',
    file: 'src/api/error-answer.ts',
    find: "code === 'turn_interrupted' || ",
    replace: '',
    layer: { file: OPENAI_CLIENT, titles: 'a lasting conversation that goes on after a stop' },
  },
  {
    name: 'a client says again by itself what may have been taken',
    file: 'src/api/error-answer.ts',
    find: " || code === 'store_outcome_unknown'",
    replace: '',
    layer: { file: 'test/api/chat.test.ts', titles: 'may have been taken .store_outcome_unknown' },
  },
  {
    name: 'a client is not told the id of its interrupted turn',
    file: 'src/gateway/api-backend.ts',
    find: 'details: { turn_id: turnId }',
    replace: 'details: {}',
    layer: { file: OPENAI_CLIENT, titles: 'a lasting conversation that goes on after a stop' },
  },
  {
    name: 'a turn is not waited for by its id',
    file: 'src/turns/turn-reader.ts',
    find: "if (turn.state === 'over' || ms === 0) return turn;",
    replace: "if (turn.state === 'over' || ms >= 0) return turn;",
    layer: { file: API_BACKEND, titles: 'waited for by its id' },
  },
  {
    name: 'the reply of a turn cannot be read by its id',
    file: 'src/gateway/api-backend.ts',
    find: "reply: state === 'over' ? resultOf(turn) : null",
    replace: 'reply: null',
    layer: { file: API_BACKEND, titles: 'waited for by its id' },
  },
  {
    name: 'an empty reply is an answer',
    file: 'src/turns/turn-run.ts',
    find: 'if (!VISIBLE.test(report.text)) throw',
    replace: "if (report.text === 'nothing') throw",
    layer: { file: 'test/gateway/commands.test.ts', titles: 'an empty reply is a failure.*mute' },
  },
  {
    name: 'a reply that nobody can see is an answer',
    file: 'src/turns/turn-run.ts',
    find: 'if (!VISIBLE.test(report.text)) throw',
    replace: "if (report.text.trim() === '') throw",
    layer: { file: 'test/gateway/commands.test.ts', titles: 'an empty reply is a failure.*invisible' },
  },
  {
    name: 'a refused one-shot with a history leaves its session open',
    file: 'src/gateway/api-backend.ts',
    find: '  const result = await gateway.conversations.receive({',
    replace: `  if (request.history.length > 0) await gateway.engine.start(conversation);
  const result = await gateway.conversations.receive({`,
    layer: { file: API_BACKEND, titles: 'a request that is refused starts no session' },
  },
  {
    name: 'a refused one-shot with a model leaves its session open',
    file: 'src/gateway/api-backend.ts',
    find: '  const result = await gateway.conversations.receive({',
    replace: `  if (request.history.length === 0 && request.model !== null) await gateway.engine.start(conversation);
  const result = await gateway.conversations.receive({`,
    layer: { file: API_BACKEND, titles: 'a request that is refused starts no session' },
  },
  {
    name: 'a one-shot that a stop cuts is over',
    file: 'src/gateway/api-backend.ts',
    find: 'return { key, kind, platform, userId, origin, attached: false };',
    replace: 'return { key, kind, platform, userId, origin, attached: conversation === null };',
    layer: { file: OPENAI_CLIENT, titles: 'a one-shot that goes on after a stop' },
  },
  {
    name: 'a one-shot ends with the process that is killed in it',
    file: 'src/gateway/api-backend.ts',
    find: 'return { key, kind, platform, userId, origin, attached: false };',
    replace: 'return { key, kind, platform, userId, origin, attached: conversation === null };',
    layer: { file: 'test/gateway/interrupted-turns.test.ts', titles: 'sent again with its key after SIGKILL' },
  },
  {
    name: 'a stream that a stop cuts ends as if the model had',
    file: 'src/api/openai/conversation.ts',
    find: 'return this.failed(shownError(failure), statusOf(failure.code));',
    replace: 'return this.delta(shownError(failure).message).concat(this.end({ usage: null } as Reply));',
    layer: { file: 'test/gateway/interrupted-turns.test.ts', titles: 'a stream of /v1/chat/completions' },
  },
  {
    name: 'words of the gateway are the reply of the model',
    file: 'src/api/openai/conversation.ts',
    find: "if (reply.outcome !== 'interrupted') return null;",
    replace: "if (reply.outcome !== 'failed') return null;",
    layer: { file: 'test/api/openai.test.ts', titles: 'no words of the gateway' },
  },
  {
    name: '/retry that comes again with its key is a conflict',
    file: 'src/gateway/api-backend.ts',
    find: 'return isCommand ? null : turn;',
    replace: 'return turn;',
    layer: { file: API_BACKEND, titles: 'a command that comes again with its key' },
  },
  ...['undo', 'retry', 'new', 'background'].map((name) => ({
    name: `/${name} that Telegram brings again is done again`,
    file: 'src/inbound/reception.ts',
    find: 'originRef: this.#refOf(message) },',
    replace: `originRef: message.text.startsWith('/${name}') ? null : this.#refOf(message) },`,
    layer: { file: REPEATED_COMMANDS, titles: `with /${name} ` },
  })),
  {
    name: 'a command that a drain refuses is recorded as given',
    file: 'src/turns/conversations.ts',
    find: 'if (command.startsTurn) this.#assertTaking();',
    replace: '',
    layer: { file: REPEATED_COMMANDS, titles: '/retry changes nothing while nothing new is taken' },
  },
  {
    name: 'a drain lets a command do half',
    file: 'src/turns/conversations.ts',
    find: "    if (text.trim() === '') throw",
    replace: "    this.#assertTaking();\n    if (text.trim() === '') throw",
    layer: { file: REPEATED_COMMANDS, titles: '/retry that a drain finds under way' },
  },
  {
    name: 'a command that may have been done is done again',
    file: 'src/turns/conversations.ts',
    find: 'if (!isUnknown) await engine.settle',
    replace: 'await engine.settle',
    layer: { file: REPEATED_COMMANDS, titles: '/new whose outcome the store could not tell' },
  },
  {
    name: 'a message overtakes the command before it',
    file: 'src/turns/conversations.ts',
    find: 'return this.#order.run(given.conversation.key, act);',
    replace: 'return act();',
    layer: { file: 'test/gateway/commands.test.ts', titles: 'a message right behind /undo' },
  },
  {
    name: '/stop right behind a message lets it begin',
    file: 'src/commands/turn-commands.ts',
    find: ' || (await stopWaiting(call, session, deps))',
    replace: '',
    layer: { file: 'test/gateway/pieces.test.ts', titles: '/stop right behind a message' },
  },
  {
    name: '/steer reaches no turn that another gateway runs',
    file: 'src/turns/turns.ts',
    find: 'else if (run === undefined) await this.#control.pass(turn, mode);',
    replace: 'else if (run === undefined) this.wake(session.id);',
    layer: { file: TWO_GATEWAYS, titles: 'SQLite.*a message that steers' },
  },
  {
    name: 'an answer given to one gateway does not reach the agent of another',
    file: 'src/people/approvals.ts',
    find: "for (const row of await this.#deps.engine.store.read('answeredApprovals', { ids })) this.#settle(row);",
    replace: "await this.#deps.engine.store.read('answeredApprovals', { ids });",
    layer: { file: TWO_GATEWAYS, titles: 'SQLite.*what an agent asks' },
  },
  {
    name: 'messages of two platforms with the same ids are one',
    file: 'src/inbound/reception.ts',
    find: '? id : `',
    replace: '? id : id ?? `',
    layer: { file: 'test/gateway/message-ids.test.ts', titles: 'two platforms with the same ids' },
  },
  {
    name: 'a supergroup has a session of its own beside that of the group',
    file: 'src/platforms/telegram/parse.ts',
    find: 'return parseMove(fresh) ?? parseMessage(fresh, self, false);',
    replace: 'return parseMessage(fresh, self, false);',
    layer: { file: MOVED_CHATS, titles: 'goes on in the session of the group' },
  },
  {
    name: 'the session that a supergroup began stays open',
    file: 'src/inbound/reception.ts',
    find: 'if (unfinished.length === 0) await engine.end',
    replace: 'if (unfinished.length < 0) await engine.end',
    layer: { file: MOVED_CHATS, titles: 'a session that began in a supergroup' },
  },
  {
    name: 'a chat that moves takes back what was accepted in it',
    file: 'src/inbound/reception.ts',
    find: 'if (unfinished.length === 0) await engine.end',
    replace: 'if (unfinished.length >= 0) await engine.end',
    layer: { file: MOVED_CHATS, titles: 'what was accepted in a supergroup' },
  },
  {
    name: 'a moved chat is known only where it was seen moving',
    file: 'src/outbound/places.ts',
    find: "return type === 'dm' ? [] : this.#store.read('movesOf', { platform, chat });",
    replace: `const read = this.#store.read('movesOf', { platform, chat });
    return Object.assign(this, { moves: Reflect.get(this, 'moves') ?? read }).moves;`,
    layer: { file: 'src/outbound/places.test.ts', titles: 'another process' },
  },
  {
    name: 'a reply to a moved group is given up where another call was refused first',
    file: 'src/platforms/telegram/send.ts',
    find: 'chat !== form.chat && !form.followed',
    replace: 'chat !== form.chat && !this.#successors.has(form.chat)',
    layer: { file: 'test/platforms/telegram.sending.test.ts', titles: 'beside another call' },
  },
];
