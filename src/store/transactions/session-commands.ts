import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command, StartCommand } from '../../lifecycle/commands.ts';
import { hasApplied, type Session, type SessionWithTurns } from '../../lifecycle/session.ts';
import type { ResetCause, Trigger } from '../../lifecycle/states.ts';
import { selectValues, text } from '../table.ts';
import { batch, type Tx, type TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import {
  applyStart,
  arrival,
  type ConversationRef,
  conversationOf,
  type EndFacts,
  replace,
  startCommand,
} from './conversations.ts';
import {
  type CommandContext,
  enter,
  enterKey,
  enterSession,
  lockKey,
  openSessionQuery,
  sessionQuery,
  withTurns,
} from './sessions.ts';
import { applyKeepingWords } from './turn-words.ts';

export interface StartArgs extends Partial<Pick<StartCommand, 'parentId' | 'lineage' | 'title'>> {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly conversation: ConversationRef;
}

/** Starts a session by itself (a batch, a terminal, a child). Repeated with the same id it returns the first one. */
export function* startSession(ctx: TxContext, args: StartArgs): Tx<Session> {
  const scope = yield* enter(ctx, args.context);
  yield* lockKey(ctx, args.conversation.key);
  const [known] = yield* batch(sessionQuery(ctx, args.sessionId));
  if (known !== undefined && hasApplied(known.session, args.context.commandId)) return known.session;
  const { context: _, sessionId, conversation, ...facts } = args;
  if (conversation.kind === 'child' && facts.parentId) yield* assertOpen(ctx, facts.parentId);
  const start = startCommand(sessionId, conversation, facts);
  const loaded =
    known === undefined ? yield* applyStart(ctx, scope, start, []) : yield* apply(ctx, scope, known, [start]);
  return loaded.session;
}

/**
 * Its end is what ends its children: one that started after it would be ended by nothing. The lock makes the end of the
 * parent wait for this start, or this start for the end.
 */
function* assertOpen(ctx: TxContext, parentId: string): Tx<void> {
  const [state] = yield* selectValues(
    text,
    `SELECT state FROM sessions WHERE id = ? ${ctx.dialect.forUpdate}`,
    parentId,
  );
  if (state !== undefined && state !== 'ended') return;
  throw new MoiraiError('session_ended', `session ${parentId}, which a child is to work for, has ended`);
}

/**
 * A session that cannot go on (suspended, overdue, its resume marker stale) while messages wait in it: it ends as if
 * one of them had just arrived, and they move on to a fresh one. Returns null when the session can go on.
 */
export function* rollOver(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; newSessionId: string },
): Tx<{ session: Session; ended: { id: string; cause: ResetCause } } | null> {
  const { scope, loaded: old } = yield* enterSession(ctx, args.context, args.sessionId);
  if (old.session.state === 'ended') return null;
  const cause = arrival(ctx, old.session);
  if (cause === null || !old.turns.some((turn) => turn.state === 'queued')) return null;
  const start = startCommand(args.newSessionId, conversationOf(old.session), {
    parentId: old.session.id,
    lineage: 'reset',
  });
  const end: EndFacts = { reason: 'auto_reset', cause, trigger: 'message' };
  const loaded = yield* replace(ctx, scope, old, end, start, []);
  return { session: loaded.session, ended: { id: old.session.id, cause } };
}

export interface SlashCommand {
  readonly command: string;
  readonly args: string;
}

export interface ResetArgs {
  readonly context: CommandContext;
  readonly conversation: ConversationRef;
  readonly newSessionId: string;
  readonly title?: string | null;
  /** Recorded as `command:<name>` of the old session. */
  readonly slash?: SlashCommand | null;
}

/** A user asks for a fresh session. Without an open one it only starts one. */
export function* resetSession(ctx: TxContext, args: ResetArgs): Tx<{ session: Session; ended: string | null }> {
  const { scope, loaded: old } = yield* enterKey(ctx, args.context, args.conversation.key);
  if (old !== undefined && old.session.id === args.newSessionId) {
    return { session: old.session, ended: old.session.parentId };
  }
  const note = noteOf(args.slash);
  const title = args.title ?? null;
  if (old === undefined) {
    const start = startCommand(args.newSessionId, args.conversation, { title });
    const loaded = yield* applyStart(ctx, scope, start, note);
    return { session: loaded.session, ended: null };
  }
  const start = startCommand(args.newSessionId, args.conversation, {
    parentId: old.session.id,
    lineage: 'reset',
    title,
    resetOf: old.session.id,
  });
  const end: EndFacts = { reason: 'user_reset', cause: null, trigger: 'command' };
  const loaded = yield* replace(ctx, scope, old, end, start, note);
  return { session: loaded.session, ended: old.session.id };
}

export interface ContinueArgs {
  readonly context: CommandContext;
  /** The session whose transcript the new one sees. */
  readonly fromId: string;
  readonly lineage: 'resume' | 'branch';
  readonly newSessionId: string;
  readonly title?: string | null;
  readonly trigger: Trigger;
  /** Where to continue, if not in the conversation it belonged to. */
  readonly conversation?: ConversationRef | null;
  readonly slash?: SlashCommand | null;
}

/**
 * Resumes or branches: a new session linked to an old one; nothing is reopened. The open session of the conversation
 * ends as `switched` (or `branched`). Resuming a session that is open in that conversation returns it.
 */
export function* continueSession(
  ctx: TxContext,
  args: ContinueArgs,
): Tx<{ session: Session; ended: string | null; created: boolean }> {
  const { scope, loaded: from } = yield* enterSession(ctx, args.context, args.fromId);
  const conversation = args.conversation ?? conversationOf(from.session);
  if (conversation.key !== from.session.key) yield* lockKey(ctx, conversation.key);
  const [open] = yield* batch(openSessionQuery(ctx, conversation.key));
  if (open !== undefined && open.session.id === args.newSessionId) {
    return { session: open.session, ended: null, created: true };
  }
  const stays = args.lineage === 'resume' && open?.session.id === from.session.id;
  if (open !== undefined && stays) return { session: open.session, ended: null, created: false };
  const start = startCommand(args.newSessionId, conversation, {
    parentId: from.session.id,
    lineage: args.lineage,
    title: args.title ?? from.session.title,
  });
  const note = noteOf(args.slash);
  if (open === undefined) {
    const loaded = yield* applyStart(ctx, scope, start, note);
    return { session: loaded.session, ended: null, created: true };
  }
  const reason = args.lineage === 'resume' ? 'switched' : 'branched';
  const loaded = yield* replace(ctx, scope, open, { reason, cause: null, trigger: args.trigger }, start, note);
  return { session: loaded.session, ended: open.session.id, created: true };
}

/** Recorded as `command:<name>`. */
function noteOf(slash: SlashCommand | null | undefined): Command[] {
  return slash ? [{ name: 'note', ...slash }] : [];
}

export interface EndArgs extends Omit<EndFacts, 'cause'> {
  readonly context: CommandContext;
  readonly sessionId: string;
  readonly cause?: EndFacts['cause'];
  readonly epoch?: number | null;
}

/** Ends a session. Ending it twice returns the first end. */
export function* endSession(ctx: TxContext, args: EndArgs): Tx<{ session: Session; already: boolean }> {
  const { scope, loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  const already = !hasApplied(loaded.session, args.context.commandId);
  if (loaded.session.state === 'ended') return { session: loaded.session, already };
  const { reason, cause = null, trigger, epoch = null } = args;
  const whole = yield* withTurns(loaded, 'all');
  const end: Command = { name: 'end', reason, cause, trigger, successorId: null, epoch };
  const after = yield* applyKeepingWords(ctx, scope, whole, end);
  return { session: after.session, already: false };
}

/** The commands that change one session and need nothing else from the store. */
export type PlainCommand = Extract<
  Command,
  {
    name:
      | 'touch'
      | 'begin'
      | 'interrupt'
      | 'suspend'
      | 'reopen'
      | 'background'
      | 'release'
      | 'compress'
      | 'title'
      | 'note';
  }
>;

/** Applies one plain command to a session; repeated with the same command id it changes nothing. */
export function* command(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; command: PlainCommand },
): Tx<SessionWithTurns> {
  const { scope, loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  if (hasApplied(loaded.session, args.context.commandId)) return loaded;
  const { command } = args;
  const needed = command.name === 'suspend' ? 'all' : command.name === 'begin' ? [command.turnId] : [];
  return yield* applyKeepingWords(ctx, scope, yield* withTurns(loaded, needed), command);
}
