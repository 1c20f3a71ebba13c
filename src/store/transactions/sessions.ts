import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command } from '../../lifecycle/commands.ts';
import { policyFor, type ResetPolicy } from '../../lifecycle/reset-policy.ts';
import type { Life, Session, Turn } from '../../lifecycle/session.ts';
import { type NumberedDraft, transition } from '../../lifecycle/transition.ts';
import {
  type Ask,
  nullableNumber,
  numberOf,
  type Query,
  query,
  queryOne,
  type Tx,
  type TxContext,
  textOf,
  together,
} from '../transaction.ts';
import { appending, type NumberedEvent, openLanes, placeOf, type Subscriber } from './record.ts';
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
 * The first step of every write: the giver's lease must be live by the store's clock, and nobody declares him dead
 * before the write is over: what it takes would be left to nobody. The same statement reads the subscribers, and on PostgreSQL thereby makes a registration wait for us, so that no event falls between the two.
 */
function entering(ctx: TxContext, giver: Giver): Ask<Desk> {
  const sql = `SELECT id AS name, state AS data, lease_until FROM instances WHERE id = ?
     UNION ALL SELECT name, patterns, NULL FROM subscribers`;
  const { instanceLock } = ctx.dialect;
  // A statement of its own: the lease must be read as it is once the lock is held.
  const locks = instanceLock === null ? [] : [{ sql: instanceLock.share, params: [giver.instance] }];
  return {
    queries: [...locks, { sql, params: [giver.instance] }],
    read: (answers) => {
      const rows = answers[locks.length] ?? [];
      const lease = rows.find((row) => row.lease_until !== null);
      if (lease === undefined || lease.data !== 'up' || numberOf(lease, 'lease_until') <= ctx.leaseNow) {
        throw new MoiraiError('lease_lost', `instance ${giver.instance} holds no live lease`);
      }
      const subscribers = rows
        .filter((row) => row !== lease)
        .map((row) => ({ name: textOf(row, 'name'), patterns: patternsOf(textOf(row, 'data')) }));
      return { giver, subscribers };
    },
  };
}

export function* enter(ctx: TxContext, giver: Giver): Tx<Desk> {
  const [desk] = yield* together(entering(ctx, giver));
  return desk;
}

/** Enters, locks a conversation, and reads the life of its open session; and whatever else is asked with it. */
export function* enterKey<T = undefined>(
  ctx: TxContext,
  giver: Giver,
  key: string,
  more: Ask<T | undefined> = NOTHING,
): Tx<{ desk: Desk; life: Life | undefined; more: T | undefined }> {
  const [desk, , read, life] = yield* together(
    entering(ctx, giver),
    lockingKey(ctx, key),
    more,
    readingOpenLife(ctx, key),
  );
  return { desk, life, more: read };
}

const NOTHING: Ask<undefined> = { queries: [], read: () => undefined };

/** The same by the id of a session, open or ended. */
export function* enterLife(ctx: TxContext, giver: Giver, sessionId: string): Tx<{ desk: Desk; life: Life }> {
  const [desk, life] = yield* together(entering(ctx, giver), lockingLife(ctx, sessionId));
  return { desk, life };
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
  yield* together(lockingKey(ctx, key));
}

function lockingKey(ctx: TxContext, key: string): Ask<void> {
  const sql = `SELECT ${ctx.dialect.lockKey('?')}`;
  return { queries: ctx.dialect.name === 'sqlite' ? [] : [{ sql, params: [key] }], read: () => undefined };
}

/**
 * The lives of several sessions, for batches. A conversation somebody else is busy with is left out, for the next
 * round: batches that wait for each other would deadlock.
 */
export function* lockLives(ctx: TxContext, sessionIds: readonly string[]): Tx<Life[]> {
  const free = JSON.stringify(yield* tryLock(ctx, sessionIds));
  const { listed, forUpdate } = ctx.dialect;
  const [sessions = [], turns = []] = yield [
    { sql: `SELECT ${SELECT_SESSION} FROM sessions WHERE id IN (${listed}) ORDER BY id ${forUpdate}`, params: [free] },
    { sql: `SELECT ${SELECT_TURN} FROM turns WHERE session_id IN (${listed}) AND ${UNFINISHED}`, params: [free] },
  ];
  const turnsOf = Map.groupBy(turns.map(toTurn), ({ sessionId }) => sessionId);
  const lives = new Map(
    sessions.map(toSession).map((session) => [session.id, { session, turns: turnsOf.get(session.id) ?? [] }]),
  );
  return sessionIds.map((id) => lives.get(id)).filter((life) => life !== undefined);
}

function* tryLock(ctx: TxContext, sessionIds: readonly string[]): Tx<readonly string[]> {
  if (ctx.dialect.name === 'sqlite') return sessionIds;
  // OFFSET 0 keeps the two apart: a lock asked for before the row is chosen would be one for somebody else.
  const rows = yield* query(
    `SELECT id FROM (SELECT id, key FROM sessions WHERE id IN (${ctx.dialect.listed}) OFFSET 0) wanted
     WHERE ${ctx.dialect.tryLockKey('key')}`,
    JSON.stringify(sessionIds),
  );
  return rows.map((row) => textOf(row, 'id'));
}

/** Locks the conversation of a session and reads its life. */
export function* lockLife(ctx: TxContext, sessionId: string): Tx<Life> {
  const [life] = yield* together(lockingLife(ctx, sessionId));
  return life;
}

function lockingLife(ctx: TxContext, sessionId: string): Ask<Life> {
  const lock = { sql: `SELECT ${ctx.dialect.lockKey('key')} FROM sessions WHERE id = ?`, params: [sessionId] };
  const locks = ctx.dialect.name === 'sqlite' ? [] : [lock];
  const reading = readingLife(ctx, sessionId);
  return {
    // Not one statement: the row must be read as it is once the lock is held.
    queries: [...locks, ...reading.queries],
    read: (rows) => {
      const life = reading.read(rows.slice(locks.length));
      if (life === undefined) throw new MoiraiError('session_not_found', `no session ${sessionId}`);
      return life;
    },
  };
}

/** The oldest first. */
const UNFINISHED = "state <> 'over' ORDER BY created_at, id";
const ID_OF_OPEN = "SELECT id FROM sessions WHERE key = ? AND state <> 'ended'";

/** The life of the open session of a conversation that is locked already. */
export function readingOpenLife(ctx: TxContext, key: string): Ask<Life | undefined> {
  return lifeWhere(ctx, "key = ? AND state <> 'ended'", `(${ID_OF_OPEN})`, key);
}

export function readingLife(ctx: TxContext, sessionId: string): Ask<Life | undefined> {
  return lifeWhere(ctx, 'id = ?', '?', sessionId);
}

function lifeWhere(ctx: TxContext, where: string, sessionId: string, param: string): Ask<Life | undefined> {
  const session = `SELECT ${SELECT_SESSION} FROM sessions WHERE ${where} ${ctx.dialect.forUpdate}`;
  const turns = `SELECT ${SELECT_TURN} FROM turns WHERE session_id = ${sessionId} AND ${UNFINISHED}`;
  return {
    queries: [
      { sql: session, params: [param] },
      { sql: turns, params: [param] },
    ],
    read: ([found = [], unfinished = []]) =>
      found[0] === undefined ? undefined : { session: toSession(found[0]), turns: unfinished.map(toTurn) },
  };
}

export function policyOf(ctx: TxContext, key: string): ResetPolicy {
  return policyFor(ctx.rules, key);
}

/** What is written with a change of a session, beside its row, its turns and its events. */
export interface Extras {
  /** The outcome of a turn that is over. */
  readonly outcome?: TurnRecord;
  /** Rows that belong to the change. */
  readonly rows?: (after: Life) => readonly Query[];
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
  extras: Extras = {},
): Tx<Life> {
  const [after] = yield* applyEach(ctx, desk, [{ life, commands, extras }]);
  if (after === undefined) throw new MoiraiError('internal', 'a change was left without an outcome');
  return after;
}

export interface Change {
  readonly life: Life | null;
  readonly commands: readonly Command[];
  readonly extras?: Extras;
}

/** The same for several sessions in one transaction. */
export function* applyEach(ctx: TxContext, desk: Desk, changes: readonly Change[]): Tx<Life[]> {
  const applied = changes.map((change) => applyAll(ctx, desk, change));
  const written = yield* together(...applied.map(({ saving }) => saving));
  yield* openLanes(ctx, desk.subscribers, written.flat());
  for (const { before, after } of applied) noteDeadline(ctx, before, after.session);
  yield* endChildren(
    ctx,
    desk,
    applied.map(({ after }) => after.session),
  );
  return applied.map(({ after }) => after);
}

interface Applied {
  readonly before: Session | undefined;
  readonly after: Life;
  /** Writes it all, and gives the events with their numbers. */
  readonly saving: Ask<NumberedEvent[]>;
}

function applyAll(ctx: TxContext, desk: Desk, { life, commands, extras = {} }: Change): Applied {
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
  const { session } = current;
  const place = placeOf(session, desk.giver.instance);
  const appended = appending(
    ctx,
    drafts.map(({ draft, sessionSeq }) => ({ draft, sessionSeq, place, id: `${session.id}:${sessionSeq}` })),
  );
  const rows = [...turnChanges(life?.turns ?? [], turns.values(), extras.outcome), ...(extras.rows?.(current) ?? [])];
  return { before: life?.session, after: current, saving: saving(life?.session, session, rows, appended) };
}

/** The row of a session by compare-and-set, what else belongs to the change, and its events. */
function saving(before: Session | undefined, after: Session, rows: readonly Query[], events: Events): Events {
  return {
    queries: [saveSession(before, after), ...rows, ...events.queries],
    read: (answers) => {
      if (before !== undefined && answers[0]?.length !== 1) {
        throw new MoiraiError('illegal_move', `session ${after.id} changed under this transaction`);
      }
      return events.read(answers.slice(1 + rows.length));
    },
  };
}

type Events = Ask<NumberedEvent[]>;

function saveSession(before: Session | undefined, after: Session): Query {
  if (before === undefined) return { sql: INSERT_SESSION, params: sessionParams(after) };
  const { set, params } = sessionChanges(before, after);
  const sql = `UPDATE sessions SET ${set} WHERE id = ? AND version = ? RETURNING id`;
  return { sql, params: [...params, after.id, before.version] };
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
              error = ? WHERE id = ?`,
      params: [state, turn.outcome, startedAt, endedAt, cuts, kept.response, kept.model, kept.error, id],
    });
  }
  return queries;
}

const NOTHING_KEPT = { response: null, model: null, error: null };

function noteDeadline(ctx: TxContext, before: Session | undefined, { checkAt }: Session): void {
  if (checkAt === null || checkAt === before?.checkAt) return;
  ctx.effects.nextDeadline = Math.min(ctx.effects.nextDeadline ?? Number.POSITIVE_INFINITY, checkAt);
}

/** A child lives no longer than its parent. */
function* endChildren(ctx: TxContext, desk: Desk, sessions: readonly Session[]): Tx<void> {
  const ended = sessions.filter(({ state }) => state === 'ended').map(({ id }) => id);
  if (ended.length === 0) return;
  const children = yield* query(
    `SELECT id FROM sessions WHERE kind = 'child' AND state <> 'ended' AND parent_id IN (${ctx.dialect.listed})
     ORDER BY id`,
    JSON.stringify(ended),
  );
  for (const child of children) {
    const life = yield* lockLife(ctx, textOf(child, 'id'));
    if (life.session.state === 'ended') continue;
    yield* apply(ctx, desk, life, [
      { name: 'end', reason: 'parent_ended', cause: null, trigger: 'process', successorId: null, epoch: null },
    ]);
  }
}

/** When to look for what is overdue: no session's deadline is earlier. */
export function* nextDeadline(_ctx: TxContext, _args: Record<never, never>): Tx<number | null> {
  const row = yield* queryOne('SELECT min(check_at) AS at FROM sessions WHERE check_at IS NOT NULL');
  return row === undefined ? null : nullableNumber(row, 'at');
}
