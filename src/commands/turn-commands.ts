import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import { ANSWERED_TEXTS } from '../people/approval-texts.ts';
import type { Message } from '../store/transactions/messages.ts';
import type { CommandAnswer, CommandCall } from '../turns/command.ts';
import { backgroundText, NOT_ANSWERED } from '../turns/texts.ts';
import { toldOfMemory } from '../turns/transcripts.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';
import { NOTHING_HERE } from './session-commands.ts';

/** More do not wait in any session that people can oversee. */
const MOST_OPEN = 1000;
const STOPPED = { type: 'told', by: 'stop' } as const;

/** Commands about what is being done in a session. */
export const TURN_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'stop',
    summary: 'stop what is being done, or what you said and waits; the session stays',
    async run(call, deps) {
      await record(call, deps);
      const { session } = call;
      const stopped =
        session !== null && ((await deps.turns.stop(session.id, STOPPED)) || (await stopWaiting(call, session, deps)));
      return stopped ? 'Stopped.' : 'Nothing is being done here.';
    },
  },
  {
    name: 'queue',
    ordered: true,
    startsTurn: true,
    takes: 'TEXT',
    summary: 'say something that is done after what is being done now',
    run: (call, deps) => sayAs(call, deps, 'queue'),
  },
  {
    name: 'steer',
    ordered: true,
    startsTurn: true,
    takes: 'TEXT',
    summary: 'say something that is taken into account at the next step',
    run: (call, deps) => sayAs(call, deps, 'steer'),
  },
  {
    name: 'undo',
    ordered: true,
    takes: '[n]',
    summary: 'take back the last message, or the last n, with all that followed',
    async run(call, deps) {
      const { session } = call;
      if (session === null) return NOTHING_HERE;
      const count = wholeNumber(call.args, 1);
      const undone = await undo(call, session, count, deps);
      return undone.length === 0 ? 'There is nothing to take back.' : `Undone: ${undone.map(quote).join(', ')}`;
    },
  },
  {
    name: 'retry',
    ordered: true,
    startsTurn: true,
    summary: 'do the last message again',
    async run(call, deps) {
      const { session } = call;
      if (session === null) return NOTHING_HERE;
      const [text] = await undo(call, session, 1, deps);
      if (text === undefined) return 'There is nothing to do again.';
      return call.send(text, 'queue');
    },
  },
  {
    name: 'compress',
    summary: 'summarise what was said so far, to make room',
    async run(call, deps) {
      if (call.session === null) return NOTHING_HERE;
      await deps.turns.runOf(call.session.id)?.done;
      await record(call, deps);
      return compress(call.session, deps);
    },
  },
  {
    name: 'model',
    ordered: true,
    takes: '[name]',
    summary: 'show or choose the model of this conversation',
    async run(call, deps) {
      await record(call, deps);
      if (call.args === '') return describeModels(call, deps);
      const known = await deps.runner.models();
      if (known.length > 0 && !known.includes(call.args)) {
        throw new MoiraiError(
          'model_unknown',
          `there is no model ${call.args}; there are ${known.slice(0, 20).join(', ')}`,
        );
      }
      const { id } = await sessionFor(call, deps);
      await keep(deps, id, { role: 'setting', text: '', turnId: null, data: { model: call.args } });
      return `From now on: ${call.args}`;
    },
  },
  {
    name: 'approve',
    takes: '[session|always] [ID]',
    summary: 'allow what is being asked for: once, in this session, or always',
    run: (call, deps) => answerApproval(call, deps, decisionOf(withoutId(call.args)), null),
  },
  {
    name: 'deny',
    takes: '[ID] [reason]',
    summary: 'refuse what is being asked for',
    run: (call, deps) => answerApproval(call, deps, 'deny', withoutId(call.args) || null),
  },
  {
    name: 'background',
    ordered: true,
    startsTurn: true,
    aliases: ['bg'],
    takes: 'TEXT',
    summary: 'have something done beside this conversation, and be told',
    async run(call, deps) {
      if (call.args === '') throw new MoiraiError('bad_input', '/background needs a text behind it');
      await record(call, deps);
      const session = await sessionFor(call, deps);
      return backgroundText(await deps.children.spawn(session, call.conversation.userId, call.args));
    },
  },
];

/** The open session of the conversation. What a command sets for later messages begins one where there is none. */
async function sessionFor(call: CommandCall, deps: CommandDeps): Promise<Session> {
  return call.session ?? (await deps.engine.start(call.conversation));
}

/** What the person who gives the command said and nobody has begun; false when there is nothing. */
async function stopWaiting({ conversation }: CommandCall, { id }: Session, deps: CommandDeps): Promise<boolean> {
  const open = await deps.engine.store.read('openTurns', { sessionId: id, limit: MOST_OPEN });
  const own = open.filter(({ by, userId }) => by === 'user' && userId === conversation.userId);
  for (const turn of own.reverse()) await deps.turns.stopTurn(turn);
  return own.length > 0;
}

async function sayAs(call: CommandCall, deps: CommandDeps, mode: 'queue' | 'steer'): Promise<CommandAnswer> {
  if (call.args === '') throw new MoiraiError('bad_input', `/${call.name} needs a text behind it`);
  await record(call, deps);
  return call.send(call.args, mode);
}

/**
 * Leaves out the last messages and all that followed them; the texts, newest first. The messages are those that were there
 * when the command was given: what another process accepts after it is neither stopped nor taken back.
 */
async function undo(call: CommandCall, session: Session, count: number, deps: CommandDeps): Promise<string[]> {
  const { messageCount, lastActivityAt } = session;
  const open = await deps.engine.store.read('openTurns', { sessionId: session.id, limit: MOST_OPEN });
  const known = open.filter(({ createdAt }) => createdAt <= lastActivityAt);
  const running = known.find(({ state }) => state === 'running')?.id ?? null;
  const isKnown = ({ position, turnId }: Message): boolean =>
    position <= messageCount || turnId === null || turnId === running;
  await record(call, deps);
  // What waits was said last.
  const waiting = known.filter(({ state, by }) => state === 'queued' && by === 'user').slice(-count);
  for (const turn of waiting.reverse()) await deps.turns.stopTurn(turn);
  const dropped = waiting.map(({ text }) => text);
  const left = count - dropped.length;
  if (left === 0) return dropped;
  return deps.turns.withTurnStopped(session.id, STOPPED, running, async () => {
    const rows = (await deps.transcripts.withoutUndone(session.id)).filter((row) => row.sessionId === session.id);
    const undone = rows.filter((row) => row.role === 'user' && isKnown(row)).slice(-left);
    const [first] = undone;
    if (first === undefined) return dropped;
    const newer = rows.find((row) => row.position > first.position && !isKnown(row));
    // Given always: a message that another process accepts may come between this look and the row.
    const to = newer === undefined ? rows.at(-1)?.position : newer.position - 1;
    await keep(deps, session.id, { role: 'undo', text: '', turnId: null, data: { from: first.position, to } });
    return [...dropped, ...undone.map(({ text }) => text).reverse()];
  });
}

function keep(
  deps: CommandDeps,
  sessionId: string,
  row: Pick<Message, 'role' | 'text' | 'turnId' | 'data'>,
): Promise<number> {
  return deps.engine.appendBeside(sessionId, [row]);
}

async function compress(session: Session, deps: CommandDeps): Promise<string> {
  const transcript = await deps.transcripts.of(session);
  const done = await deps.runner.compress({
    sessionId: session.id,
    turnId: '',
    platform: session.platform,
    userId: session.userId,
    transcript,
    about: toldOfMemory(transcript, session.id) ?? null,
    model: null,
    signal: AbortSignal.timeout(120_000),
    context: {
      keep: async (rows) => {
        await deps.engine.appendBeside(
          session.id,
          rows.map((row) => ({ ...row, turnId: null })),
        );
      },
      takeSteering: async () => [],
      channel: { publish: () => undefined },
      approve: async () => ({ allowed: false, reason: 'nobody is asked while summarising' }),
      beforeSummary: (rows) => deps.memory.beforeSummary(session, rows),
    },
  });
  if (done === null) return 'There is nothing to gain from a summary yet.';
  await deps.engine.compressed(session.id, done);
  return `Summarised ${done.count} messages: about ${done.beforeTokens} tokens became ${done.afterTokens}.`;
}

async function describeModels(call: CommandCall, deps: CommandDeps): Promise<string> {
  const chosen = call.session === null ? null : await deps.transcripts.chosenModel(call.session);
  const known = await deps.runner.models();
  return [`Model: ${chosen ?? deps.runner.description}`, ...known.map((name) => `- ${name}`)].join('\n');
}

async function answerApproval(
  call: CommandCall,
  deps: CommandDeps,
  decision: ApprovalAnswer,
  reason: string | null,
): Promise<string> {
  await record(call, deps);
  const { approvals } = deps;
  // By its id a question of another conversation is answered, by an admin who was asked elsewhere.
  const id = APPROVAL_ID.exec(call.args)?.[0];
  const answered =
    id === undefined
      ? await approvals.answer(call.conversation.key, decision, call.by, reason)
      : await approvals.answerById(id, decision, call.by, reason);
  if (answered === null) return 'Nothing is being asked for.';
  if (answered === 'not yours' || answered === 'admins only') return NOT_ANSWERED[answered];
  return `${ANSWERED_TEXTS[decision]}: ${answered.summary}`;
}

const APPROVAL_ID = /\bapr_[0-9a-z]+\b/;

function withoutId(args: string): string {
  return args.replace(APPROVAL_ID, '').trim();
}

function decisionOf(args: string): ApprovalAnswer {
  if (args === '') return 'once';
  if (args === 'once' || args === 'session' || args === 'always') return args;
  throw new MoiraiError('bad_input', `/approve takes session or always, not "${args.slice(0, 40)}"`);
}

function wholeNumber(text: string, otherwise: number): number {
  if (text === '') return otherwise;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > 1000) {
    throw new MoiraiError('bad_input', `${text} is not a number from 1 to 1000`);
  }
  return number;
}

function quote(text: string): string {
  return `“${text.length > 60 ? `${text.slice(0, 59)}…` : text}”`;
}
