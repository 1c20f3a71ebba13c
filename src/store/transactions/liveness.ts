import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command } from '../../lifecycle/commands.ts';
import { runningTurn, type Session, type SessionWithTurns } from '../../lifecycle/session.ts';
import type { Trigger } from '../../lifecycle/states.ts';
import { flag, integer, nullableInteger, nullableText, type RowOf, selectValues, Table, text, word } from '../table.ts';
import { placeholders, type Query, query, type Tx, type TxContext } from '../transaction.ts';
import { apply, applyEach } from './apply.ts';
import { claimsOf, type LaneClaim, releaseClaims, releaseStrays } from './queue.ts';
import { NO_KEY, NOWHERE, record } from './record.ts';
import { type CommandContext, enter, lockKey, lockSessions, type WriteScope } from './sessions.ts';

/** What an instance says of itself, so that others on its host can prove its death. */
const facts = {
  id: text,
  name: nullableText,
  version: text,
  host: text,
  /** Names this boot of the machine; null where the system has none. */
  bootId: nullableText,
  /** Process ids mean something only within one of these. */
  pidSpace: nullableText,
  pid: integer,
  /** When the process started, in the system's own words; tells a reused pid from the same process. */
  pidStarted: nullableText,
};

export type InstanceFacts = RowOf<Table<typeof facts>>;

const columns = {
  ...facts,
  state: word<'up' | 'dead'>(),
  startedAt: integer,
  heartbeatAt: integer,
  lostAt: nullableInteger,
  leaseUntil: integer,
};

const INSTANCES = new Table('instances', columns);

/** With how many sessions name it as their owner. */
const OWNERS = new Table(
  '(SELECT instances.*, (SELECT count(*) FROM owned_sessions WHERE owner = instances.id) AS owns FROM instances) owner',
  { ...columns, owns: integer },
);

export interface Instance extends Omit<RowOf<typeof OWNERS>, 'leaseUntil'> {
  /** Past its lease by the store's clock. */
  readonly expired: boolean;
}

/** A process begins to take part: it gets a lease under an id that was never used before. */
export function* bootInstance(ctx: TxContext, args: { facts: InstanceFacts; ttlMs: number }): Tx<void> {
  const times = { startedAt: ctx.now, heartbeatAt: ctx.now, lostAt: null, leaseUntil: ctx.leaseNow + args.ttlMs };
  yield [INSTANCES.insert({ ...args.facts, state: 'up', ...times }, 'ON CONFLICT (id) DO NOTHING')];
}

/** Renews a live lease and the heartbeat of everything the instance runs. A lease that ran out stays out. */
export function* beat(ctx: TxContext, args: { instance: string; ttlMs: number }): Tx<void> {
  const renewed = yield* query(
    `UPDATE instances SET lease_until = ?, heartbeat_at = ?
     WHERE id = ? AND state = 'up' AND lease_until > ? RETURNING id`,
    ctx.leaseNow + args.ttlMs,
    ctx.now,
    args.instance,
    ctx.leaseNow,
  );
  if (renewed.length === 0) throw new MoiraiError('lease_lost', `the lease of instance ${args.instance} ran out`);
  yield* query(
    `UPDATE sessions SET last_heartbeat_at = ?
     WHERE owner = ? AND id IN (SELECT id FROM owned_sessions WHERE owner = ?)`,
    ctx.now,
    args.instance,
    args.instance,
  );
}

/** An instance leaves in order. What it still owns is left to the reaper, at once. */
export function* stopInstance(ctx: TxContext, args: { instance: string }): Tx<void> {
  // What it is still writing comes first: afterwards there is no instance that it could belong to.
  yield* ctx.dialect.takeInstance(args.instance);
  yield* releaseClaims(args.instance);
  if ((yield* countOwned(args.instance)) > 0) {
    yield* query("UPDATE instances SET state = 'dead', lost_at = ? WHERE id = ?", ctx.now, args.instance);
  } else {
    yield* query('DELETE FROM instances WHERE id = ?', args.instance);
  }
}

function* countOwned(instance: string): Tx<number> {
  const [count = 0] = yield* selectValues(integer, 'SELECT count(*) FROM owned_sessions WHERE owner = ?', instance);
  return count;
}

export interface ReapArgs {
  readonly context: CommandContext;
  /** Instances whose death was proven on their own host, lease or not. */
  readonly provenDead: readonly string[];
  readonly limit: number;
}

export interface Reaped {
  readonly lost: string[];
  readonly reaped: string[];
  readonly interrupted: string[];
  readonly released: string[];
  /** More is left than `limit` allowed. */
  readonly more: boolean;
}

/**
 * Finds dead owners and settles what they left: attached sessions end as `reaped`, durable ones in a turn become
 * `resume_pending`, the rest is free again. A live owner's sessions are never touched.
 */
export function* reap(ctx: TxContext, args: ReapArgs): Tx<Reaped> {
  const scope = yield* enter(ctx, args.context);
  const lost = yield* markDead(ctx, scope, args.provenDead);
  const orphans = yield* ORPHANS.selectAs(
    `SELECT s.id, s.owner FROM owned_sessions s LEFT JOIN instances i ON i.id = s.owner
     WHERE i.id IS NULL OR i.state = 'dead' ORDER BY s.id LIMIT ?`,
    args.limit,
  );
  const settled = yield* settleOrphans(ctx, scope, orphans);
  return { lost, ...settled, more: orphans.length === args.limit };
}

const ORPHANS = new Table('owned_sessions', { id: text, owner: text });

/** Marks expired and proven-dead instances, frees their claims, and writes `instance:lost` once for each. */
function* markDead(ctx: TxContext, scope: WriteScope, provenDead: readonly string[]): Tx<string[]> {
  const proven = provenDead.length === 0 ? '' : `OR id IN (${placeholders(provenDead.length)})`;
  const candidates = yield* selectValues(
    text,
    `SELECT id FROM instances WHERE state = 'up' AND id <> ? AND (lease_until <= ? ${proven}) ORDER BY id`,
    scope.context.instanceId,
    ctx.leaseNow,
    ...provenDead,
  );
  const lost: string[] = [];
  for (const id of candidates) {
    // It is in the middle of a write, or frozen in one: what that takes would be left to nobody. The next round has it.
    if (!(yield* ctx.dialect.tryTakeInstance(id))) continue;
    // Between the two statements a late heartbeat may have renewed the lease: only who is still out is buried.
    const buried = yield* query(
      `UPDATE instances SET state = 'dead', lost_at = ? WHERE id = ? AND state = 'up' AND (lease_until <= ? ${proven})
       RETURNING id`,
      ctx.now,
      id,
      ctx.leaseNow,
      ...provenDead,
    );
    if (buried.length === 0) continue;
    lost.push(id);
    yield* releaseClaims(id);
    const fields = { instance: id, sessions: yield* countOwned(id) };
    yield* announce(ctx, scope, { id: `${id}:lost`, draft: { type: 'instance:lost', fields } });
  }
  return lost;
}

type Announcement = Pick<Parameters<typeof record>[2][number], 'id' | 'draft'>;

/** Writes an event that belongs to no session. */
function* announce(ctx: TxContext, scope: WriteScope, event: Announcement): Tx<void> {
  yield* lockKey(ctx, NO_KEY);
  const place = { ...NOWHERE, instance: scope.context.instanceId };
  yield* record(ctx, scope.subscribers, [{ ...event, sessionSeq: null, place }]);
}

/** Writes an instance event such as `gateway:startup`; the id makes a repeated call harmless to subscribers. */
export function* announceInstance(ctx: TxContext, args: { context: CommandContext; event: Announcement }): Tx<void> {
  const scope = yield* enter(ctx, args.context);
  yield* announce(ctx, scope, args.event);
}

function* settleOrphans(
  ctx: TxContext,
  scope: WriteScope,
  orphans: readonly ({ readonly id: string; readonly owner: string } & Partial<Stray>)[],
): Tx<Omit<Reaped, 'lost' | 'more'>> {
  const reaped: string[] = [];
  const interrupted: string[] = [];
  const released: string[] = [];
  for (const { id, owner, epoch, held = false } of orphans) {
    const [loaded] = yield* lockSessions(ctx, [id]);
    // Between the listing and the lock another reaper may have settled it, and somebody alive taken it.
    if (loaded?.session.owner !== owner || loaded.session.epoch !== (epoch ?? loaded.session.epoch)) continue;
    const command = held ? afterLostBegin(loaded) : afterOwner(loaded);
    yield* apply(ctx, scope, loaded, [command]);
    const list = command.name === 'end' ? reaped : command.name === 'interrupt' ? interrupted : released;
    list.push(id);
  }
  return { reaped, interrupted, released };
}

/** What becomes of a session whose owner does not know that it began the running turn. */
function afterLostBegin(loaded: SessionWithTurns): Command {
  const turn = runningTurn(loaded);
  // What dies with its owner cannot be resumed, and its owner is alive: only the turn is over.
  if (loaded.session.attached && turn !== undefined) {
    const result = { outcome: 'interrupted', response: null, model: null, usage: null } as const;
    return { name: 'finish', turnId: turn.id, epoch: null, ...result };
  }
  return turn === undefined ? { name: 'touch', by: 'system' } : { name: 'interrupt', reason: 'crash', epoch: null };
}

/** What becomes of a session whose owner is gone. */
function afterOwner(loaded: SessionWithTurns): Command {
  if (loaded.session.attached) {
    return { name: 'end', reason: 'reaped', cause: null, trigger: 'reaper', successorId: null, epoch: null };
  }
  if (runningTurn(loaded) !== undefined) return { name: 'interrupt', reason: 'crash', epoch: null };
  return { name: 'release' };
}

/** A session as its owner got it: every taking of it raises the epoch. */
const HOLDINGS = new Table('sessions', {
  id: text,
  epoch: integer,
  /** A turn of it is running. */
  running: flag,
});

export type Holding = RowOf<typeof HOLDINGS>;

/** What the rows say an instance holds. */
export function* heldBy(_ctx: TxContext, args: { instance: string }): Tx<{ sessions: Holding[]; claims: LaneClaim[] }> {
  const sessions = yield* HOLDINGS.selectAs(
    `SELECT s.id, s.epoch, EXISTS (
       SELECT 1 FROM turns WHERE session_id = s.id AND state <> 'over' AND state = 'running'
     ) FROM owned_sessions o JOIN sessions s ON s.id = o.id WHERE o.owner = ? ORDER BY s.id`,
    args.instance,
  );
  return { sessions, claims: yield* claimsOf(args.instance) };
}

/** What a row says and its owner never learned. */
export interface Stray {
  readonly id: string;
  /** Settled only while the row is still at this epoch; null for any. */
  readonly epoch: number | null;
  /** The owner holds the session for another reason: only its running turn is unknown to it. */
  readonly held: boolean;
}

/**
 * Settles what names this instance but what it does not hold: the takeover was committed and the reply lost. Without
 * this such sessions would wait for an owner who does not know of them.
 */
export function* reconcile(
  ctx: TxContext,
  args: { context: CommandContext; sessions: readonly Stray[]; claims: readonly LaneClaim[] },
): Tx<Omit<Reaped, 'lost' | 'more'>> {
  const scope = yield* enter(ctx, args.context);
  yield* releaseStrays(ctx, args.context.instanceId, args.claims);
  const strays = args.sessions.map((stray) => ({ ...stray, owner: args.context.instanceId }));
  return yield* settleOrphans(ctx, scope, strays);
}

const DEADLINES = new Table('sessions', { id: text, expiresAt: nullableInteger });

/** Ends what is overdue, a batch at a time. */
export function* expire(
  ctx: TxContext,
  args: { context: CommandContext; limit: number; trigger: Extract<Trigger, 'watcher' | 'startup'> },
): Tx<{ ended: string[]; more: boolean }> {
  const scope = yield* enter(ctx, args.context);
  // Several may do this at once: each takes what no other has in hand.
  const listed = yield* DEADLINES.select(
    `WHERE check_at <= ? ORDER BY check_at, id LIMIT ? ${ctx.dialect.skipLocked}`,
    ctx.now,
    args.limit,
  );
  const due = listed.filter(({ expiresAt }) => isDue(expiresAt, ctx.now));
  if (due.length < listed.length) yield [lookLater(ctx, listed)];
  const loaded = yield* lockSessions(
    ctx,
    due.map(({ id }) => id),
  );
  // A message may have come between the listing and the lock.
  const overdue = loaded.filter(({ session }) => isDue(session.expiresAt, ctx.now));
  yield* applyEach(
    ctx,
    scope,
    overdue.map((loaded) => ({ loaded, commands: [endOf(loaded.session, args.trigger)] })),
  );
  return { ended: overdue.map(({ session }) => session.id), more: listed.length === args.limit };
}

function isDue(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function endOf({ expiresCause }: Session, trigger: Trigger): Command {
  const reason = expiresCause === 'daily' ? 'daily_reset' : 'idle_expiry';
  return { name: 'end', reason, cause: null, trigger, successorId: null, epoch: null };
}

/**
 * Sorts those of the sessions that were active since to where their deadline is now; while it is held off, to nowhere.
 * This transaction holds the locks of their rows: two watchers cannot wait for each other.
 */
function lookLater(ctx: TxContext, sessions: readonly { readonly id: string }[]): Query {
  return {
    sql: `UPDATE sessions SET check_at = expires_at
      WHERE id IN (${ctx.dialect.listed}) AND (expires_at IS NULL OR expires_at > ?)`,
    params: [JSON.stringify(sessions.map(({ id }) => id)), ctx.now],
  };
}

/** All known instances, the living and the recently lost. */
export function* listInstances(ctx: TxContext, _args: Record<never, never>): Tx<Instance[]> {
  const rows = yield* OWNERS.select('ORDER BY started_at, id');
  return rows.map(({ leaseUntil, ...instance }) => ({ ...instance, expired: leaseUntil <= ctx.leaseNow }));
}

/** Forgets instances that were lost long ago and own nothing. */
export function* forgetInstances(ctx: TxContext, args: { lostBefore: number }): Tx<void> {
  yield* query(
    `DELETE FROM instances WHERE state = 'dead' AND lost_at < ?
     AND NOT EXISTS (SELECT 1 FROM owned_sessions WHERE owner = instances.id)`,
    Math.min(args.lostBefore, ctx.now),
  );
}
