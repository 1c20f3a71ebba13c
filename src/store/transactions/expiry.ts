import type { Command } from '../../lifecycle/commands.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { Trigger } from '../../lifecycle/states.ts';
import { integer, nullableInteger, selectValues, Table, text } from '../table.ts';
import type { Query, Tx, TxContext } from '../transaction.ts';
import { applyEach } from './apply.ts';
import { type CommandContext, enter, lockSessions } from './sessions.ts';

/** When to look for what is overdue: no session's deadline is earlier. */
export function* nextDeadline(_ctx: TxContext, _args: Record<never, never>): Tx<number | null> {
  const [at = null] = yield* selectValues(
    nullableInteger,
    'SELECT min(check_at) FROM sessions WHERE check_at IS NOT NULL',
  );
  return at;
}

/** Sessions whose deadline has passed and that nobody has ended yet. */
export function* overdueSessions(
  ctx: TxContext,
  _args: Record<never, never>,
): Tx<{ count: number; oldest: number | null }> {
  const [overdue] = yield* OVERDUE.selectAs(
    'SELECT count(*), min(expires_at) FROM sessions WHERE check_at <= ? AND expires_at <= ?',
    ctx.now,
    ctx.now,
  );
  return overdue ?? { count: 0, oldest: null };
}

const OVERDUE = new Table('sessions', { count: integer, oldest: nullableInteger });

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
