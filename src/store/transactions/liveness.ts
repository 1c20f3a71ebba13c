import { MoiraiError } from '../../errors/moirai-error.ts';
import { integer, nullableInteger, nullableText, type RowOf, selectValues, Table, text, word } from '../table.ts';
import { query, type Tx, type TxContext } from '../transaction.ts';
import { returnClaims } from './queue.ts';
import { NO_KEY, NOWHERE, record } from './record.ts';
import { type CommandContext, enter, lockKey, type WriteScope } from './sessions.ts';

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
  // A session in the hands of another transaction is told at the next heartbeat: the lease must not wait for it.
  yield* query(
    `UPDATE sessions SET last_heartbeat_at = ? WHERE id IN (
       SELECT id FROM sessions WHERE owner = ? AND id IN (SELECT id FROM owned_sessions WHERE owner = ?)
       ${ctx.dialect.skipLocked})`,
    ctx.now,
    args.instance,
    args.instance,
  );
}

/** Writes to the instance's own row and leaves its lease alone: finds out whether anything can be kept at all. */
export function* probe(ctx: TxContext, args: { instance: string }): Tx<void> {
  // Another value: SQLite does not write a row that stays as it is.
  yield* query('UPDATE instances SET heartbeat_at = ? WHERE id = ?', ctx.now, args.instance);
}

/** An instance leaves in order. What it still owns is left to the reaper, at once. */
export function* stopInstance(ctx: TxContext, args: { instance: string }): Tx<void> {
  // What it is still writing comes first: afterwards there is no instance that it could belong to.
  yield* ctx.dialect.takeInstance(args.instance);
  yield* returnClaims(args.instance);
  if ((yield* countOwned(args.instance)) > 0) {
    yield* query("UPDATE instances SET state = 'dead', lost_at = ? WHERE id = ?", ctx.now, args.instance);
  } else {
    yield* query('DELETE FROM instances WHERE id = ?', args.instance);
  }
}

export function* countOwned(instance: string): Tx<number> {
  const [count = 0] = yield* selectValues(integer, 'SELECT count(*) FROM owned_sessions WHERE owner = ?', instance);
  return count;
}

type Announcement = Pick<Parameters<typeof record>[2][number], 'id' | 'draft'>;

/** Writes an event that belongs to no session. */
export function* announce(ctx: TxContext, scope: WriteScope, event: Announcement): Tx<void> {
  yield* lockKey(ctx, NO_KEY);
  const place = { ...NOWHERE, instance: scope.context.instanceId };
  yield* record(ctx, scope.subscribers, [{ ...event, sessionSeq: null, place }]);
}

/** Writes an instance event such as `gateway:startup`; the id makes a repeated call harmless to subscribers. */
export function* announceInstance(ctx: TxContext, args: { context: CommandContext; event: Announcement }): Tx<void> {
  const scope = yield* enter(ctx, args.context);
  yield* announce(ctx, scope, args.event);
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
