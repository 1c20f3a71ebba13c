import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { Message } from '../../store/transactions/messages.ts';
import { toldOfMemory } from '../transcripts.ts';
import { type CommandAnswer, type CommandCall, type CommandDesk, record, type SlashCommandSpec } from './command.ts';
import { NOTHING_HERE } from './session-commands.ts';

const STOPPED = { type: 'told', by: 'stop' } as const;

/** Commands about what is being done in a session. */
export const TURN_COMMANDS: readonly SlashCommandSpec[] = [
  {
    name: 'stop',
    summary: 'stop what is being done; the session stays',
    async run(call, desk) {
      await record(call, desk);
      const stopped = call.session !== null && (await desk.turns.stop(call.session.id, STOPPED));
      return stopped ? 'Stopped.' : 'Nothing is being done here.';
    },
  },
  {
    name: 'queue',
    takes: 'TEXT',
    summary: 'say something that is done after what is being done now',
    run: (call, desk) => sayAs(call, desk, 'queue'),
  },
  {
    name: 'steer',
    takes: 'TEXT',
    summary: 'say something that is taken into account at the next step',
    run: (call, desk) => sayAs(call, desk, 'steer'),
  },
  {
    name: 'undo',
    takes: '[n]',
    summary: 'take back the last message, or the last n, with all that followed',
    async run(call, desk) {
      const { session } = call;
      if (session === null) return NOTHING_HERE;
      const count = wholeNumber(call.args, 1);
      await record(call, desk);
      const undone = await desk.turns.quietly(session.id, STOPPED, () => undo(session, count, desk));
      return undone.length === 0 ? 'There is nothing to take back.' : `Took back: ${undone.map(quote).join(', ')}`;
    },
  },
  {
    name: 'retry',
    summary: 'do the last message again',
    async run(call, desk) {
      const { session } = call;
      if (session === null) return NOTHING_HERE;
      await record(call, desk);
      const [text] = await desk.turns.quietly(session.id, STOPPED, () => undo(session, 1, desk));
      if (text === undefined) return 'There is nothing to do again.';
      return desk.say({ party: call.party, text, originRef: call.originRef, mode: 'queue', verbatim: true });
    },
  },
  {
    name: 'compress',
    summary: 'summarise what was said so far, to make room',
    async run(call, desk) {
      if (call.session === null) return NOTHING_HERE;
      await desk.turns.runOf(call.session.id)?.done;
      await record(call, desk);
      return compress(call.session, desk);
    },
  },
  {
    name: 'model',
    takes: '[name]',
    summary: 'show or choose the model of this conversation',
    async run(call, desk) {
      await record(call, desk);
      if (call.args === '') return describeModels(call, desk);
      if (call.session === null) return NOTHING_HERE;
      const known = await desk.runner.models();
      if (known.length > 0 && !known.includes(call.args)) {
        throw new MoiraiError(
          'model_unknown',
          `there is no model ${call.args}; there are ${known.slice(0, 20).join(', ')}`,
        );
      }
      await keep(desk, call.session.id, { role: 'setting', text: '', turnId: null, data: { model: call.args } });
      return `From now on: ${call.args}`;
    },
  },
  {
    name: 'approve',
    summary: 'allow what is being asked for',
    run: async (call, desk) => answerApproval(call, desk, true),
  },
  {
    name: 'deny',
    takes: '[reason]',
    summary: 'refuse what is being asked for',
    run: async (call, desk) => answerApproval(call, desk, false),
  },
];

async function sayAs(call: CommandCall, desk: CommandDesk, mode: 'queue' | 'steer'): Promise<CommandAnswer> {
  if (call.args === '') throw new MoiraiError('bad_input', `/${call.name} needs a text behind it`);
  await record(call, desk);
  return desk.say({ party: call.party, text: call.args, originRef: call.originRef, mode, verbatim: true });
}

/** Leaves out the last messages and all that followed them; the texts, newest first. */
async function undo(session: Session, count: number, desk: CommandDesk): Promise<string[]> {
  const spoken = (await desk.transcripts.standing(session.id)).filter(
    ({ role, sessionId }) => role === 'user' && sessionId === session.id,
  );
  const undone = spoken.slice(-count);
  const [first] = undone;
  if (first === undefined) return [];
  await keep(desk, session.id, { role: 'undo', text: '', turnId: null, data: { from: first.position } });
  return undone.map(({ text }) => text).reverse();
}

function keep(
  desk: CommandDesk,
  sessionId: string,
  row: Pick<Message, 'role' | 'text' | 'turnId' | 'data'>,
): Promise<number> {
  return desk.engine.appendBeside(sessionId, [row]);
}

async function compress(session: Session, desk: CommandDesk): Promise<string> {
  const transcript = await desk.transcripts.of(session);
  const done = await desk.runner.compress({
    sessionId: session.id,
    turnId: '',
    platform: session.platform,
    userId: session.userId,
    transcript,
    about: toldOfMemory(transcript, session.id) ?? null,
    model: null,
    signal: AbortSignal.timeout(120_000),
    desk: {
      keep: async (rows) => {
        await desk.engine.appendBeside(
          session.id,
          rows.map((row) => ({ ...row, turnId: null })),
        );
      },
      takeSteering: async () => [],
      show: () => undefined,
      approve: async () => ({ allowed: false, reason: 'nobody is asked while summarising' }),
      beforeSummary: (rows) => desk.memory.beforeSummary(session, rows),
    },
  });
  if (done === null) return 'There is nothing to gain from a summary yet.';
  await desk.engine.compressed(session.id, done);
  return `Summarised ${done.count} messages: about ${done.beforeTokens} tokens became ${done.afterTokens}.`;
}

async function describeModels(call: CommandCall, desk: CommandDesk): Promise<string> {
  const chosen = call.session === null ? null : await desk.transcripts.chosenModel(call.session);
  const known = await desk.runner.models();
  return [`Model: ${chosen ?? desk.runner.description}`, ...known.map((name) => `- ${name}`)].join('\n');
}

async function answerApproval(call: CommandCall, desk: CommandDesk, allowed: boolean): Promise<string> {
  await record(call, desk);
  const reason = call.args === '' ? 'the user said no' : call.args;
  const answered = desk.approvals.answer(call.party.key, allowed ? { allowed } : { allowed, reason }, call.by);
  if (answered === null) return 'Nothing is being asked for.';
  if (answered === 'not yours') return 'This was not asked of you.';
  return `${allowed ? 'Allowed' : 'Refused'}: ${answered.action}`;
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
