import { MoiraiError } from '../errors/moirai-error.ts';
import type { Command } from './commands.ts';
import type { EventDraft, EventFields } from './events.ts';
import type { ResetPolicy } from './reset-policy.ts';
import { agentEnd, CUT_SHORT, interruptedRuns, turnFields } from './run-events.ts';
import { runningTurn, type Session, type SessionWithTurns, type Turn } from './session.ts';
import { END_REASONS, MOVES, type SessionState } from './states.ts';

/** Everything from outside that a transition depends on. */
export interface TransitionContext {
  readonly now: number;
  /** The instance that gives the command. */
  readonly instance: string;
  readonly commandId: string;
  readonly policy: ResetPolicy;
  readonly resumeWindowMs: number;
  readonly stuckAfter: number;
}

/** A step's answer before the bookkeeping that is the same for all: state, version, deadline, numbers. */
export interface Step {
  readonly session?: Partial<Session>;
  readonly turns?: readonly Turn[];
  readonly events?: readonly EventDraft[];
  /** Where the step leads when that is not what the table of moves says for the command alone. */
  readonly state?: SessionState;
}

type Named<N extends Command['name']> = Extract<Command, { name: N }>;

/** What each command does to a session that there is. */
export const STEPS: {
  readonly [N in Exclude<Command['name'], 'start'>]: (
    current: SessionWithTurns,
    command: Named<N>,
    context: TransitionContext,
  ) => Step;
} = {
  touch: ({ session }, { by }, { now }) => ({ session: activity(session, by, now) }),
  enqueue,
  begin,
  append: ({ session }, { messages }) => ({ session: { messageCount: session.messageCount + messages } }),
  finish,
  interrupt,
  suspend,
  reopen,
  release,
  background,
  compress: (_, { beforeTokens, afterTokens, count }) => {
    const fields = { before_tokens: beforeTokens, after_tokens: afterTokens, count };
    return { events: [{ type: 'session:compress', fields }] };
  },
  title: (_, { title }) => ({ session: { title }, events: [{ type: 'session:title', fields: { title } }] }),
  // Who gives a command is there: it moves the deadline as a message does.
  note: ({ session }, { command, args }, { now }) => ({
    session: activity(session, 'user', now),
    events: [{ type: `command:${command}`, fields: { command, args } }],
  }),
  end,
};

function enqueue(current: SessionWithTurns, command: Named<'enqueue'>, context: TransitionContext): Step {
  const turn: Turn = {
    id: command.turnId,
    sessionId: current.session.id,
    by: command.by,
    userId: command.userId,
    userName: command.userName,
    state: 'queued',
    outcome: null,
    text: command.text,
    // Turns are served by age: one that comes after the clock was set back must not go ahead.
    createdAt: Math.max(context.now, current.turns.at(-1)?.createdAt ?? 0),
    startedAt: null,
    endedAt: null,
    cuts: 0,
  };
  const { origin } = current.session;
  return {
    session: { ...activity(current.session, command.by, context.now), origin: origin ?? command.origin },
    turns: [turn],
  };
}

function begin(current: SessionWithTurns, { turnId }: Named<'begin'>, context: TransitionContext): Step {
  const { session } = current;
  const turn = findTurn(current, turnId);
  const running = runningTurn(current);
  if (running !== undefined) {
    throw new MoiraiError('illegal_move', `cannot begin turn ${turnId}: turn ${running.id} is running`);
  }
  if (session.owner !== null && session.owner !== context.instance) {
    throw new MoiraiError('fenced', `session ${session.id} is held by instance ${session.owner}`);
  }
  const resumes: EventDraft[] =
    session.state === 'resume_pending' ? [{ type: 'session:resume', fields: { turn_id: turnId } }] : [];
  // Newer text is answered first and takes the place of the turn that was cut.
  const superseded = current.turns.filter((other) => other.state === 'cut' && other.id !== turnId);
  return {
    session: {
      owner: context.instance,
      epoch: session.epoch + 1,
      lastHeartbeatAt: context.now,
      lastSystemAt: context.now,
      resumeReason: null,
      resumeAt: null,
    },
    turns: [
      { ...turn, state: 'running', startedAt: context.now },
      ...superseded.map((other) => over(other, 'interrupted', context.now)),
    ],
    events: [...resumes, { type: 'agent:start', fields: turnFields(session, turn) }],
  };
}

function finish(current: SessionWithTurns, command: Named<'finish'>, context: TransitionContext): Step {
  const { session } = current;
  const turn = findTurn(current, command.turnId);
  const finished = over(turn, command.outcome, context.now);
  // A turn that waits has no agent:start to answer: it is dropped without an event of its own.
  if (turn.state !== 'running') return { turns: [finished] };
  return {
    session: {
      ...activity(session, turn.by, context.now),
      owner: session.attached || session.background > 0 ? session.owner : null,
      lastSystemAt: context.now,
      tokensIn: session.tokensIn + (command.usage?.input ?? 0),
      tokensOut: session.tokensOut + (command.usage?.output ?? 0),
      cuts: 0,
    },
    turns: [finished],
    events: [agentEnd(session, turn, command)],
  };
}

function interrupt(current: SessionWithTurns, { reason }: Named<'interrupt'>, context: TransitionContext): Step {
  const { session } = current;
  const turn = runningTurn(current);
  if (turn === undefined || session.attached) {
    throw new MoiraiError('illegal_move', `session ${session.id} has no turn that could be resumed`);
  }
  const cuts = session.cuts + 1;
  const stuck = cuts >= context.stuckAfter;
  const events: EventDraft[] = [
    agentEnd(session, turn, CUT_SHORT),
    { type: 'session:resume_pending', fields: { reason, turn_id: turn.id } },
  ];
  if (stuck) events.push({ type: 'session:suspend', fields: { reason: 'stuck_loop', turn_id: turn.id } });
  return {
    session: {
      owner: null,
      background: 0,
      resumeReason: stuck ? null : reason,
      resumeAt: stuck ? null : context.now,
      suspendReason: stuck ? 'stuck_loop' : null,
      lastSystemAt: context.now,
      cuts,
    },
    turns: [
      stuck
        ? { ...over(turn, 'failed', context.now), cuts: turn.cuts + 1 }
        : { ...turn, state: 'cut', cuts: turn.cuts + 1 },
    ],
    events,
    // The cut that is one too many makes two legal moves at once: interrupted, then parked.
    state: stuck ? MOVES.resume_pending.suspend : MOVES.open.interrupt,
  };
}

function suspend(current: SessionWithTurns, { reason }: Named<'suspend'>, context: TransitionContext): Step {
  const { session } = current;
  const started = current.turns.filter((turn) => turn.state !== 'queued');
  return {
    session: {
      owner: session.attached ? session.owner : null,
      background: 0,
      resumeReason: null,
      resumeAt: null,
      suspendReason: reason,
    },
    turns: started.map((turn) => over(turn, 'interrupted', context.now)),
    events: [
      ...interruptedRuns(current),
      { type: 'session:suspend', fields: { reason, turn_id: started[0]?.id ?? null } },
    ],
  };
}

/** Counts as activity: a session must not expire in the moment in which it is released. */
function reopen({ session }: SessionWithTurns, _: Named<'reopen'>, { now }: TransitionContext): Step {
  return {
    session: { ...activity(session, 'user', now), suspendReason: null, cuts: 0 },
    events: [{ type: 'session:release', fields: { reason: session.suspendReason } }],
  };
}

function release(current: SessionWithTurns): Step {
  const running = runningTurn(current);
  if (current.session.attached || running !== undefined) {
    throw new MoiraiError('illegal_move', `session ${current.session.id} cannot be released: it needs its owner`);
  }
  return { session: { owner: null, background: 0 } };
}

/** Background processes live in a process, so a session that has some keeps its owner: else nobody would miss them. */
function background(current: SessionWithTurns, { running }: Named<'background'>, context: TransitionContext): Step {
  const { session } = current;
  const inUse = session.attached || running > 0 || runningTurn(current) !== undefined;
  const takesOver = session.owner === null && running > 0;
  return {
    session: {
      background: running,
      owner: inUse ? (session.owner ?? context.instance) : null,
      epoch: takesOver ? session.epoch + 1 : session.epoch,
    },
  };
}

function end(current: SessionWithTurns, command: Named<'end'>, context: TransitionContext): Step {
  const { session } = current;
  if (!END_REASONS.includes(command.reason)) {
    throw new MoiraiError('bad_reason', `"${command.reason}" is not an end reason`, {
      details: { known: END_REASONS },
    });
  }
  const fields: EventFields['session:end'] = {
    reason: command.reason,
    cause: command.cause,
    trigger: command.trigger,
    duration_ms: Math.max(0, context.now - session.startedAt),
    message_count: session.messageCount,
    successor_id: command.successorId,
  };
  return {
    session: {
      endedAt: context.now,
      endReason: command.reason,
      endCause: command.cause,
      suspendReason: null,
      owner: null,
      background: 0,
      resumeReason: null,
      resumeAt: null,
    },
    turns: current.turns.map((turn) => turnAfterEnd(turn, command.successorId, context.now)),
    events: [...interruptedRuns(current), { type: 'session:end', fields }],
  };
}

/** A message that waits moves on to the successor; without one, it is over, and its sender is told. */
function turnAfterEnd(turn: Turn, successorId: string | null, now: number): Turn {
  if (turn.state === 'queued' && successorId !== null) return { ...turn, sessionId: successorId };
  return over(turn, 'interrupted', now);
}

/** Only people move the user's clock, and no clock ever moves back. */
function activity(session: Session, by: 'user' | 'system', now: number): Partial<Session> {
  if (by === 'user') return { lastActivityAt: Math.max(session.lastActivityAt, now) };
  return { lastSystemAt: Math.max(session.lastSystemAt ?? 0, now) };
}

function findTurn(current: SessionWithTurns, turnId: string): Turn {
  const turn = current.turns.find((candidate) => candidate.id === turnId);
  if (turn !== undefined) return turn;
  throw new MoiraiError('turn_not_found', `session ${current.session.id} has no unfinished turn ${turnId}`);
}

function over(turn: Turn, outcome: Turn['outcome'], now: number): Turn {
  return { ...turn, state: 'over', outcome, endedAt: now };
}
