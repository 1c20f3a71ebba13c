import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command } from '../../lifecycle/commands.ts';
import { policyFor, type ResetPolicy } from '../../lifecycle/reset-policy.ts';
import type { Life, Session, Turn } from '../../lifecycle/session.ts';
import { type NumberedDraft, transition } from '../../lifecycle/transition.ts';
import { nullableNumber, numberOf, query, queryOne, type Tx, type TxContext, textOf } from '../transaction.ts';
import { placeOf, record, type Subscriber } from './record.ts';
import {
  INSERT_SESSION,
  SELECT_SESSION,
  SELECT_TURN,
  sessionChanges,
  sessionParams,
  toSession,
  toTurn,
} from './rows.ts';

/** Who gives a command, under which id: repeating it with the same id changes nothing. */
export interface Giver {
  readonly instance: string;
  readonly commandId: string;
}

/** What a write transaction knows after it has shown its lease. */
export interface Desk {
  readonly giver: Giver;
  readonly subscribers: readonly Subscriber[];
}

const patternCache = new Map<string, readonly string[]>();

/**
 * The first step of every write: the giver's lease must be live by the store's clock. The same statement reads the
 * subscribers, and on PostgreSQL thereby makes a registration wait for us, so that no event falls between the two.
 */
export function* enter(ctx: TxContext, giver: Giver): Tx<Desk> {
  const rows = yield* query(
    `SELECT id AS name, state AS data, lease_until FROM instances WHERE id = ?
     UNION ALL SELECT name, patterns, NULL FROM subscribers`,
    giver.instance,
  );
  const lease = rows.find((row) => row.lease_until !== null);
  if (lease === undefined || lease.data !== 'up' || numberOf(lease, 'lease_until') <= ctx.leaseNow) {
    throw new MoiraiError('lease_lost', `instance ${giver.instance} holds no live lease`);
  }
  const subscribers = rows
    .filter((row) => row !== lease)
    .map((row) => ({ name: textOf(row, 'name'), patterns: patternsOf(textOf(row, 'data')) }));
  return { giver, subscribers };
}

export function patternsOf(json: string): readonly string[] {
  const known = patternCache.get(json);
  if (known !== undefined) return known;
  const patterns = JSON.parse(json) as string[];
  patternCache.set(json, patterns);
  return patterns;
}

/** Makes all writers of a conversation queue up behind this transaction. */
export function* lockKey(ctx: TxContext, key: string): Tx<void> {
  if (ctx.dialect.name === 'sqlite') return;
  yield* query(`SELECT ${ctx.dialect.lockKey('?')}`, key);
}

/** For batches: a conversation somebody else is busy with is left for the next round, so that batches never deadlock. */
export function* tryLockSession(ctx: TxContext, sessionId: string): Tx<boolean> {
  if (ctx.dialect.name === 'sqlite') return true;
  const row = yield* queryOne(
    `SELECT CASE WHEN ${ctx.dialect.tryLockKey('key')} THEN 1 ELSE 0 END AS held FROM sessions WHERE id = ?`,
    sessionId,
  );
  return row !== undefined && numberOf(row, 'held') === 1;
}

/** Locks the conversation of a session and reads its life. */
export function* lockLife(ctx: TxContext, sessionId: string): Tx<Life> {
  if (ctx.dialect.name !== 'sqlite') {
    yield* query(`SELECT ${ctx.dialect.lockKey('key')} FROM sessions WHERE id = ?`, sessionId);
  }
  const life = yield* readLife(ctx, 'id = ?', sessionId);
  if (life === undefined) throw new MoiraiError('session_not_found', `no session ${sessionId}`);
  return life;
}

/** The life of the open session of a conversation that is locked already. */
export function* readOpenLife(ctx: TxContext, key: string): Tx<Life | undefined> {
  return yield* readLife(ctx, "key = ? AND state <> 'ended'", key);
}

export function* readLife(ctx: TxContext, where: string, param: string): Tx<Life | undefined> {
  const row = yield* queryOne(`SELECT ${SELECT_SESSION} FROM sessions WHERE ${where} ${ctx.dialect.forUpdate}`, param);
  if (row === undefined) return undefined;
  const session = toSession(row);
  const turns = yield* query(
    `SELECT ${SELECT_TURN} FROM turns WHERE session_id = ? AND state <> 'over' ORDER BY created_at, id`,
    session.id,
  );
  return { session, turns: turns.map(toTurn) };
}

export function policyOf(ctx: TxContext, key: string): ResetPolicy {
  return policyFor(ctx.rules, key);
}

/**
 * Applies commands to a life, one after the other, and writes the outcome once: the row by compare-and-set, the
 * turns, the events and their lanes. With `life` null the first command is a start.
 */
export function* apply(
  ctx: TxContext,
  desk: Desk,
  life: Life | null,
  commands: readonly Command[],
  outcome: TurnRecord | null = null,
): Tx<Life> {
  let current = life;
  const drafts: NumberedDraft[] = [];
  const turns = new Map<string, Turn>();
  for (const command of commands) {
    const key = command.name === 'start' ? command.key : (current?.session.key ?? '');
    const result = transition(current, command, {
      now: ctx.now,
      instance: desk.giver.instance,
      commandId: desk.giver.commandId,
      policy: policyOf(ctx, key),
      resumeWindowMs: ctx.rules.resumeWindowMs,
      stuckAfter: ctx.rules.stuckAfter,
    });
    for (const turn of result.turns) turns.set(turn.id, turn);
    drafts.push(...result.events);
    current = { session: result.session, turns: unfinished(current?.turns ?? [], turns, result.session.id) };
  }
  if (current === null) throw new MoiraiError('internal', 'no command to apply');
  yield* saveSession(life?.session ?? null, current.session);
  yield* saveTurns(life?.turns ?? [], turns.values(), outcome);
  const place = placeOf(current.session, desk.giver.instance);
  const id = current.session.id;
  yield* record(
    ctx,
    desk.subscribers,
    drafts.map(({ draft, sessionSeq }) => ({ draft, sessionSeq, place, id: `${id}:${sessionSeq}` })),
  );
  noteDeadline(ctx, current.session);
  if (current.session.state === 'ended') yield* endChildren(ctx, desk, current.session);
  return current;
}

function unfinished(before: readonly Turn[], changed: ReadonlyMap<string, Turn>, sessionId: string): Turn[] {
  const all = new Map(before.map((turn) => [turn.id, turn]));
  for (const [id, turn] of changed) all.set(id, turn);
  return [...all.values()].filter((turn) => turn.state !== 'over' && turn.sessionId === sessionId);
}

function* saveSession(before: Session | null, after: Session): Tx<void> {
  if (before === null) {
    yield* query(INSERT_SESSION, ...sessionParams(after));
    return;
  }
  const { set, params } = sessionChanges(before, after);
  const saved = yield* query(
    `UPDATE sessions SET ${set} WHERE id = ? AND version = ? RETURNING id`,
    ...params,
    after.id,
    before.version,
  );
  if (saved.length !== 1) throw new MoiraiError('illegal_move', `session ${after.id} changed under this transaction`);
}

/** What is kept of a finished turn beside its state. */
export interface TurnRecord {
  readonly turnId: string;
  readonly response: string | null;
  readonly model: string | null;
  readonly error: string | null;
}

function* saveTurns(before: readonly Turn[], changed: Iterable<Turn>, outcome: TurnRecord | null): Tx<void> {
  for (const turn of changed) {
    const known = before.find((other) => other.id === turn.id);
    // A new turn's row is written by who knows its full text: `enqueue` in conversations.ts.
    if (known === undefined) continue;
    if (turn.sessionId !== known.sessionId) {
      yield* query('UPDATE turns SET session_id = ? WHERE id = ?', turn.sessionId, turn.id);
    }
    const kept = turn.id === outcome?.turnId ? outcome : null;
    yield* query(
      `UPDATE turns SET state = ?, outcome = ?, started_at = ?, ended_at = ?, cuts = ?, response = ?, model = ?, error = ?
       WHERE id = ?`,
      turn.state,
      turn.outcome,
      turn.startedAt,
      turn.endedAt,
      turn.cuts,
      kept?.response ?? null,
      kept?.model ?? null,
      kept?.error ?? null,
      turn.id,
    );
  }
}

function noteDeadline(ctx: TxContext, session: Session): void {
  if (session.expiresAt === null) return;
  ctx.effects.nextDeadline = Math.min(ctx.effects.nextDeadline ?? Number.POSITIVE_INFINITY, session.expiresAt);
}

/** A child lives no longer than its parent. */
function* endChildren(ctx: TxContext, desk: Desk, parent: Session): Tx<void> {
  const children = yield* query(
    "SELECT id FROM sessions WHERE parent_id = ? AND kind = 'child' AND state <> 'ended' ORDER BY id",
    parent.id,
  );
  for (const child of children) {
    const life = yield* lockLife(ctx, textOf(child, 'id'));
    if (life.session.state === 'ended') continue;
    yield* apply(ctx, desk, life, [
      { name: 'end', reason: 'parent_ended', cause: null, trigger: 'process', successorId: null, epoch: null },
    ]);
  }
}

/** The earliest deadline in the store. */
export function* nextDeadline(_ctx: TxContext, _args: Record<never, never>): Tx<number | null> {
  const row = yield* queryOne('SELECT min(expires_at) AS at FROM sessions WHERE expires_at IS NOT NULL');
  return row === undefined ? null : nullableNumber(row, 'at');
}
