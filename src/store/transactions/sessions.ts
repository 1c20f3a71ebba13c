import { MoiraiError } from '../../errors/moirai-error.ts';
import type { SessionWithTurns, Turn } from '../../lifecycle/session.ts';
import type { Dialect } from '../dialect.ts';
import { nullableInteger, Table, text, wordList } from '../table.ts';
import { type Ask, batch, remembered, type Tx, type TxContext } from '../transaction.ts';
import type { Subscriber } from './record.ts';
import { SESSIONS, TURNS } from './rows.ts';

/** The instance that sends a command, and the id of the command: repeating it with the same id changes nothing. */
export interface CommandContext {
  readonly instanceId: string;
  readonly commandId: string;
}

/** What a write transaction knows after it has shown its lease. */
export interface WriteScope {
  readonly context: CommandContext;
  readonly subscribers: readonly Subscriber[];
}

/** The lease of an instance, and the subscribers, which have none. */
const ENTRANCE = new Table('instances', { name: text, data: text, leaseUntil: nullableInteger });
const LEASE_AND_SUBSCRIBERS = `SELECT id, state, lease_until FROM instances WHERE id = ?
  UNION ALL SELECT name, patterns, NULL FROM subscribers`;
const PATTERNS = wordList();
const patternCache = new Map<string, readonly string[]>();

/**
 * The first step of every write: the instance's lease must be live by the store's clock, and nobody declares it dead
 * before the write is over: what it takes would be left to nobody. The same statement reads the subscribers; on PostgreSQL
 * a registration waits for us, so that no event falls between the two.
 */
function enterQuery(ctx: TxContext, context: CommandContext): Ask<WriteScope> {
  const { instanceId } = context;
  return {
    // Two statements: the lease must be read as it is once the lock is held.
    queries: [
      ...ctx.dialect.shareInstance(instanceId),
      { sql: LEASE_AND_SUBSCRIBERS, params: [instanceId], returns: 'values', cacheable: true },
    ],
    read: (answers) => {
      const rows = ENTRANCE.rows(answers.at(-1) ?? []);
      const lease = rows.find(({ leaseUntil }) => leaseUntil !== null);
      if (lease?.data !== 'up' || (lease.leaseUntil ?? 0) <= ctx.leaseNow) {
        throw new MoiraiError('lease_lost', `instance ${instanceId} holds no live lease`);
      }
      const subscribers = rows.filter((row) => row !== lease);
      return { context, subscribers: subscribers.map(({ name, data }) => ({ name, patterns: patternsOf(data) })) };
    },
  };
}

export function* enter(ctx: TxContext, context: CommandContext): Tx<WriteScope> {
  const [scope] = yield* batch(enterQuery(ctx, context));
  return scope;
}

/** Enters, locks a conversation, and reads its open session with its turns; and whatever else is asked with it. */
export function* enterKey<T = undefined>(
  ctx: TxContext,
  context: CommandContext,
  key: string,
  more: Ask<T | undefined> = NOTHING,
): Tx<{ scope: WriteScope; loaded: SessionWithTurns | undefined; more: T | undefined }> {
  const [scope, , read, loaded] = yield* batch(
    enterQuery(ctx, context),
    lockKeyQuery(ctx, key),
    more,
    openSessionQuery(ctx, key),
  );
  return { scope, loaded, more: read };
}

const NOTHING: Ask<undefined> = { queries: [], read: () => undefined };

/** The same by the id of a session, open or ended. */
export function* enterSession(
  ctx: TxContext,
  context: CommandContext,
  sessionId: string,
): Tx<{ scope: WriteScope; loaded: SessionWithTurns }> {
  const [scope, loaded] = yield* batch(enterQuery(ctx, context), lockSessionQuery(ctx, sessionId));
  return { scope, loaded };
}

/** Every write reads these: a subscriber whose row is damaged listens to nothing until it registers again. */
function patternsOf(json: string): readonly string[] {
  const known = patternCache.get(json);
  if (known !== undefined) return known;
  const patterns = PATTERNS.decode(json);
  patternCache.set(json, patterns);
  return patterns;
}

/** Makes all writers of a conversation queue up behind this transaction. */
export function* lockKey(ctx: TxContext, key: string): Tx<void> {
  yield* batch(lockKeyQuery(ctx, key));
}

function lockKeyQuery(ctx: TxContext, key: string): Ask<void> {
  return { queries: ctx.dialect.lockKey(key), read: () => undefined };
}

/**
 * Several sessions with their turns, for batches. A conversation somebody else is busy with is left out, for the next
 * round: batches that wait for each other would deadlock.
 */
export function* lockSessions(ctx: TxContext, sessionIds: readonly string[]): Tx<SessionWithTurns[]> {
  const free = JSON.stringify(yield* ctx.dialect.tryLockKeysOf(sessionIds));
  const { listed, forUpdate } = ctx.dialect;
  const [sessions = [], turns = []] = yield [
    SESSIONS.query(`WHERE id IN (${listed}) ORDER BY id ${forUpdate}`, free),
    TURNS.query(`WHERE session_id IN (${listed}) AND ${UNFINISHED}`, free),
  ];
  const turnsOf = Map.groupBy(TURNS.rows(turns), ({ sessionId }) => sessionId);
  const loaded = new Map(
    SESSIONS.rows(sessions).map((session) => [session.id, { session, turns: turnsOf.get(session.id) ?? [] }]),
  );
  return sessionIds.map((id) => loaded.get(id)).filter((loaded) => loaded !== undefined);
}

/** Locks the conversation of a session and reads the session with its turns. */
export function* lockSession(ctx: TxContext, sessionId: string): Tx<SessionWithTurns> {
  const [loaded] = yield* batch(lockSessionQuery(ctx, sessionId));
  return loaded;
}

function lockSessionQuery(ctx: TxContext, sessionId: string): Ask<SessionWithTurns> {
  const locks = ctx.dialect.lockKeyOf(sessionId);
  const reading = sessionQuery(ctx, sessionId);
  return {
    // Not one statement: the row must be read as it is once the lock is held.
    queries: [...locks, ...reading.queries],
    read: (rows) => {
      const loaded = reading.read(rows.slice(locks.length));
      if (loaded === undefined) throw new MoiraiError('session_not_found', `no session ${sessionId}`);
      return loaded;
    },
  };
}

/** A long queue is not read for every message that joins it: see `withTurns`. */
const FIRST_TURNS = 32;
/** The oldest first. */
const UNFINISHED = "state <> 'over' ORDER BY created_at, id";
const OPEN = "key = ? AND state <> 'ended'";
const SESSION_BY_ID = remembered(({ forUpdate }: Dialect) => `WHERE id = ? ${forUpdate}`);
const SESSION_BY_KEY = remembered(({ forUpdate }: Dialect) => `WHERE ${OPEN} ${forUpdate}`);
const TURNS_BY_ID = `WHERE session_id = ? AND ${UNFINISHED} LIMIT ${FIRST_TURNS}`;
const TURNS_BY_KEY = `WHERE session_id = (SELECT id FROM sessions WHERE ${OPEN}) AND ${UNFINISHED} LIMIT ${FIRST_TURNS}`;

const OF_SESSION = 'WHERE session_id = ? AND';
const ALL_TURNS = `${OF_SESSION} ${UNFINISHED}`;
const RUNNING_TURN = `${OF_SESSION} state = 'running'`;
const NEWEST_TURN = `${OF_SESSION} state <> 'over' ORDER BY created_at DESC, id DESC LIMIT 1`;
const TURN_BY_ID = `${OF_SESSION} id = ? AND state <> 'over'`;

/**
 * A session with the turns that a command needs: of a long queue only its beginning was read. What runs and what came
 * last is added always, and these turns; or all of them, for a command that settles each.
 */
export function* withTurns(loaded: SessionWithTurns, needed: readonly string[] | 'all'): Tx<SessionWithTurns> {
  if (loaded.turns.length < FIRST_TURNS) return loaded;
  const { id } = loaded.session;
  const queries =
    needed === 'all'
      ? [TURNS.query(ALL_TURNS, id)]
      : [
          TURNS.query(RUNNING_TURN, id),
          TURNS.query(NEWEST_TURN, id),
          ...needed.map((turnId) => TURNS.query(TURN_BY_ID, id, turnId)),
        ];
  const turns = new Map(loaded.turns.map((turn) => [turn.id, turn]));
  for (const turn of TURNS.rows((yield queries).flat())) turns.set(turn.id, turn);
  return { session: loaded.session, turns: [...turns.values()].sort(byAge) };
}

function byAge(a: Turn, b: Turn): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** The open session, with its turns, of a conversation that is locked already. */
export function openSessionQuery(ctx: TxContext, key: string): Ask<SessionWithTurns | undefined> {
  return sessionWithTurnsQuery(SESSION_BY_KEY(ctx.dialect), TURNS_BY_KEY, key);
}

export function sessionQuery(ctx: TxContext, sessionId: string): Ask<SessionWithTurns | undefined> {
  return sessionWithTurnsQuery(SESSION_BY_ID(ctx.dialect), TURNS_BY_ID, sessionId);
}

function sessionWithTurnsQuery(session: string, turns: string, param: string): Ask<SessionWithTurns | undefined> {
  return {
    queries: [SESSIONS.query(session, param), TURNS.query(turns, param)],
    read: ([rows = [], unfinished = []]) => {
      const [found] = SESSIONS.rows(rows);
      return found && { session: found, turns: TURNS.rows(unfinished) };
    },
  };
}
