import { MoiraiError } from '../errors/moirai-error.ts';
import type { Command, StartCommand } from './commands.ts';
import { checkTime, deadlineOf } from './deadline.ts';
import { type EventDraft, isNumbered } from './events.ts';
import { rememberCommand, type Session, type SessionWithTurns, type Turn } from './session.ts';
import { parseKey } from './session-key.ts';
import { MOVES, moveFrom, type SessionState } from './states.ts';
import { STEPS, type Step, type TransitionContext } from './steps.ts';

export interface NumberedDraft {
  readonly draft: EventDraft;
  readonly sessionSeq: number | null;
}

export interface Transition {
  readonly session: Session;
  /** The turns this transition changed or made, as they are now. */
  readonly turns: readonly Turn[];
  readonly events: readonly NumberedDraft[];
}

/**
 * The only way a session changes: the session so far and a command give the session afterwards and the events to write.
 * Pure: no clock, no randomness, no I/O.
 */
export function transition(current: SessionWithTurns | null, command: Command, context: TransitionContext): Transition {
  if (command.name === 'start') return start(current, command, context);
  if (current === null) throw new MoiraiError('session_not_found', `no session to ${command.name}`);
  const { session } = current;
  if (session.state === 'ended') {
    throw new MoiraiError(
      'session_ended',
      `session ${session.id} ended at ${new Date(session.endedAt ?? 0).toISOString()}`,
    );
  }
  const target = moveFrom(session.state, command.name);
  if (target === undefined) {
    throw new MoiraiError('illegal_move', `cannot ${command.name} session ${session.id}: it is ${session.state}`);
  }
  assertFence(session, command, context);
  // A repeated message is known by its turn; remembering each would push out what only its command id tells.
  const step = STEPS[command.name](current, command as never, context);
  return settle(current, target, step, context, command.name !== 'enqueue');
}

function start(current: SessionWithTurns | null, command: StartCommand, context: TransitionContext): Transition {
  if (current !== null) throw new MoiraiError('session_exists', `session ${command.sessionId} exists already`);
  parseKey(command.key);
  const { sessionId, key, kind, platform, userId, origin, parentId, lineage, attached, title, resetOf } = command;
  const { now, instance } = context;
  const session: Session = {
    id: sessionId,
    key,
    kind,
    platform,
    userId,
    origin,
    parentId,
    lineage,
    attached,
    startedAt: now,
    title,
    state: 'open',
    lastActivityAt: now,
    lastSystemAt: null,
    expiresAt: null,
    expiresCause: null,
    checkAt: null,
    endedAt: null,
    endReason: null,
    endCause: null,
    messageCount: 0,
    tokensIn: 0,
    tokensOut: 0,
    owner: attached ? instance : null,
    epoch: attached ? 1 : 0,
    lastHeartbeatAt: attached ? now : null,
    resumeReason: null,
    resumeAt: null,
    suspendReason: null,
    cuts: 0,
    background: 0,
    seq: 0,
    version: 0,
    lastCommand: null,
    recentCommands: '',
  };
  const events: EventDraft[] = [{ type: 'session:start', fields: { parent_id: parentId, lineage, origin } }];
  if (resetOf !== null) {
    events.push({ type: 'session:reset', fields: { old_session_id: resetOf, new_session_id: sessionId } });
  }
  return settle({ session, turns: [] }, MOVES.none.start, { events }, context);
}

/** The bookkeeping every move shares: next state, version, command id, deadline, and the numbers of its events. */
function settle(
  current: SessionWithTurns,
  target: SessionState,
  step: Step,
  context: TransitionContext,
  repeatable = true,
): Transition {
  const changed = step.turns ?? [];
  const untouched = current.turns.filter((turn) => !changed.some((other) => other.id === turn.id));
  const here = changed.filter((turn) => turn.state !== 'over' && turn.sessionId === current.session.id);
  let seq = current.session.seq;
  const events = (step.events ?? []).map((draft) => ({
    draft,
    sessionSeq: isNumbered(draft.type) ? ++seq : null,
  }));
  const moved: Session = {
    ...current.session,
    ...step.session,
    state: step.state ?? target,
    seq,
    version: current.session.version + 1,
    lastCommand: context.commandId,
    recentCommands: repeatable ? rememberCommand(current.session, context.commandId) : current.session.recentCommands,
  };
  const deadline = deadlineOf(
    { session: moved, turns: [...untouched, ...here] },
    context.policy,
    context.resumeWindowMs,
  );
  const checkAt = checkTime(moved, deadline.expiresAt);
  return { session: { ...moved, ...deadline, checkAt }, turns: changed, events };
}

function assertFence(session: Session, command: Command, context: TransitionContext): void {
  if (!('epoch' in command) || command.epoch === null) return;
  if (session.owner === context.instance && session.epoch === command.epoch) return;
  throw new MoiraiError(
    'fenced',
    `session ${session.id} is at epoch ${session.epoch} of ${session.owner ?? 'nobody'}, ` +
      `not at epoch ${command.epoch} of ${context.instance}`,
  );
}
