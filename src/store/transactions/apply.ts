import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command, TokenUsage } from '../../lifecycle/commands.ts';
import type { EventDraft, EventPlace } from '../../lifecycle/events.ts';
import { policyFor } from '../../lifecycle/reset-policy.ts';
import { outlivesParent, type SessionWithTurns, type Turn } from '../../lifecycle/session.ts';
import { type NumberedDraft, transition } from '../../lifecycle/transition.ts';
import { selectValues, text } from '../table.ts';
import type { Query, Tx, TxContext } from '../transaction.ts';
import { type EventToWrite, placeOf, recording } from './record.ts';
import { type SessionChange, saveSessions } from './rows.ts';
import { lockSession, type WriteScope, withTurns } from './sessions.ts';

/** What is written with a change of a session, beside its row, its turns and its events. */
export interface Extras {
  /** The outcome of a turn that is over. */
  readonly outcome?: TurnRecord;
  /** Rows that belong to the change. */
  readonly rows?: (after: SessionWithTurns) => readonly Query[];
}

/**
 * Applies commands to a session, one after the other, and writes the outcome once: the row by compare-and-set, the
 * turns, the events and their lanes. With `loaded` null the first command is a start.
 */
export function* apply(
  ctx: TxContext,
  scope: WriteScope,
  loaded: SessionWithTurns | null,
  commands: readonly Command[],
  extras: Extras = {},
): Tx<SessionWithTurns> {
  const [after] = yield* applyEach(ctx, scope, [{ loaded, commands, extras }]);
  if (after === undefined) throw new MoiraiError('internal', 'a change was left without an outcome');
  return after;
}

export interface Change {
  readonly loaded: SessionWithTurns | null;
  readonly commands: readonly Command[];
  readonly extras?: Extras;
}

/** The same for several sessions in one transaction. */
export function* applyEach(ctx: TxContext, scope: WriteScope, changes: readonly Change[]): Tx<SessionWithTurns[]> {
  const applied = changes.map((change) => applyAll(ctx, scope, change));
  const events = applied.flatMap((change) => change.events);
  // The events last: what a written event tells has been done.
  yield [
    ...saveSessions(ctx.dialect, applied),
    ...applied.flatMap(({ rows }) => rows),
    ...recording(ctx, scope.subscribers, events),
  ];
  for (const change of applied) noteDeadline(ctx, change);
  yield* endChildren(ctx, scope, applied);
  return applied.map(({ loaded }) => loaded);
}

interface Applied extends SessionChange {
  readonly loaded: SessionWithTurns;
  /** Writes the turns and what else belongs to the change. */
  readonly rows: readonly Query[];
  readonly events: readonly EventToWrite[];
}

function applyAll(ctx: TxContext, scope: WriteScope, { loaded, commands, extras = {} }: Change): Applied {
  let current = loaded;
  const drafts: NumberedDraft[] = [];
  const turns = new Map<string, Turn>();
  for (const command of commands) {
    const key = command.name === 'start' ? command.key : (current?.session.key ?? '');
    const result = transition(current, command, {
      now: ctx.now,
      instance: scope.context.instanceId,
      commandId: scope.context.commandId,
      policy: policyFor(ctx.rules, key),
      resumeWindowMs: ctx.rules.resumeWindowMs,
      stuckAfter: ctx.rules.stuckAfter,
    });
    for (const turn of result.turns) turns.set(turn.id, turn);
    drafts.push(...result.events);
    current = { session: result.session, turns: unfinished(current?.turns ?? [], turns, result.session.id) };
  }
  if (current === null) throw new MoiraiError('internal', 'no command to apply');
  const { session } = current;
  const place = placeOf(session, scope.context.instanceId);
  const events = drafts.map(({ draft, sessionSeq }) => {
    return { draft, sessionSeq, place: spokenBy(place, draft, turns), id: `${session.id}:${sessionSeq}` };
  });
  const rows = [...turnChanges(loaded?.turns ?? [], turns.values(), extras.outcome), ...(extras.rows?.(current) ?? [])];
  return { before: loaded?.session ?? null, after: session, loaded: current, rows, events };
}

/** Who a turn is for is who wrote its message, not who started the session. */
function spokenBy(place: EventPlace, { type, fields }: EventDraft, turns: ReadonlyMap<string, Turn>): EventPlace {
  if (type !== 'agent:start' && type !== 'agent:end') return place;
  const turn = 'turn_id' in fields ? turns.get(fields.turn_id) : undefined;
  return turn === undefined ? place : { ...place, user_id: turn.userId };
}

function unfinished(before: readonly Turn[], changed: ReadonlyMap<string, Turn>, sessionId: string): Turn[] {
  const all = new Map(before.map((turn) => [turn.id, turn]));
  for (const [id, turn] of changed) all.set(id, turn);
  return [...all.values()].filter((turn) => turn.state !== 'over' && turn.sessionId === sessionId);
}

/** What is kept of a finished turn beside its state. */
export interface TurnRecord {
  readonly turnId: string;
  readonly response: string | null;
  readonly model: string | null;
  readonly usage: TokenUsage | null;
  readonly error: string | null;
}

function turnChanges(before: readonly Turn[], changed: Iterable<Turn>, outcome: TurnRecord | undefined): Query[] {
  const queries: Query[] = [];
  for (const turn of changed) {
    const known = before.find((other) => other.id === turn.id);
    // A new turn's row is written by who knows its full text: `enqueue` in conversations.ts.
    if (known === undefined) continue;
    if (turn.sessionId !== known.sessionId) {
      queries.push({ sql: 'UPDATE turns SET session_id = ? WHERE id = ?', params: [turn.sessionId, turn.id] });
    }
    const { id, state, startedAt, endedAt, cuts } = turn;
    const kept = id === outcome?.turnId ? outcome : NOTHING_KEPT;
    queries.push({
      sql: `UPDATE turns SET state = ?, outcome = ?, started_at = ?, ended_at = ?, cuts = ?, response = ?, model = ?,
              tokens_in = ?, tokens_out = ?, error = ? WHERE id = ?`,
      params: [
        ...[state, turn.outcome, startedAt, endedAt, cuts, kept.response, kept.model],
        ...[kept.usage?.input ?? null, kept.usage?.output ?? null, kept.error, id],
      ],
    });
  }
  return queries;
}

const NOTHING_KEPT = { response: null, model: null, usage: null, error: null };

function noteDeadline(ctx: TxContext, { before, after: { checkAt } }: SessionChange): void {
  if (checkAt === null || checkAt === before?.checkAt) return;
  ctx.effects.nextDeadline = Math.min(ctx.effects.nextDeadline ?? Number.POSITIVE_INFINITY, checkAt);
}

/** A child lives no longer than its parent, unless it works for the conversation; then no longer than that one's data. */
function* endChildren(ctx: TxContext, scope: WriteScope, changes: readonly SessionChange[]): Tx<void> {
  const ended = changes.filter(({ after }) => after.state === 'ended').map(({ after }) => after.id);
  const deleted = new Set(changes.filter(({ after }) => after.endReason === 'deleted').map(({ after }) => after.id));
  if (ended.length === 0) return;
  const children = yield* selectValues(
    text,
    `SELECT id FROM sessions WHERE kind = 'child' AND state <> 'ended' AND parent_id IN (${ctx.dialect.listed})
     ORDER BY id`,
    JSON.stringify(ended),
  );
  for (const child of children) {
    const loaded = yield* withTurns(yield* lockSession(ctx, child), 'all');
    if (loaded.session.state === 'ended') continue;
    if (outlivesParent(loaded.session) && !deleted.has(loaded.session.parentId ?? '')) continue;
    yield* apply(ctx, scope, loaded, [
      { name: 'end', reason: 'parent_ended', cause: null, trigger: 'process', successorId: null, epoch: null },
    ]);
  }
}
