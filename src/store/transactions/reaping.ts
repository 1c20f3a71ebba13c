import type { Command } from '../../lifecycle/commands.ts';
import { runningTurn, type SessionWithTurns } from '../../lifecycle/session.ts';
import { flag, integer, type RowOf, selectValues, Table, text } from '../table.ts';
import { placeholders, query, type Tx, type TxContext } from '../transaction.ts';
import { announce, countOwned } from './liveness.ts';
import { claimsOf, type LaneClaim, releaseClaims, releaseStrays } from './queue.ts';
import { type CommandContext, enter, lockSessions, type WriteScope } from './sessions.ts';
import { applyKeepingWords } from './turn-words.ts';

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
    yield* applyKeepingWords(ctx, scope, loaded, command);
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
