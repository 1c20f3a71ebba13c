import { deadlineOf } from '../../lifecycle/deadline.ts';
import { policyFor } from '../../lifecycle/reset-policy.ts';
import type { SessionWithTurns } from '../../lifecycle/session.ts';
import { Table, text } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';
import { applyEach } from './apply.ts';
import { type CommandContext, enter, lockSessions } from './sessions.ts';

const OPEN = new Table('sessions', { id: text, key: text });

export interface RuledBatch {
  /** The key behind which the next batch begins; null after the last one. */
  readonly next: string | null;
  readonly changed: number;
  /** Conversations that were busy in this moment: they have to be looked at again. */
  readonly busy: readonly string[];
}

/**
 * Gives a batch of open sessions the deadlines that the reset rules say now. Sessions whose deadline stays as it is are
 * read and not written, so that a reload costs one walk over what is open, in pieces.
 */
export function* applyRules(
  ctx: TxContext,
  args: { context: CommandContext; after: string; limit: number },
): Tx<RuledBatch> {
  // By key: that index has nothing but what is open, so that what ended costs nothing.
  const open = yield* OPEN.select("WHERE state <> 'ended' AND key > ? ORDER BY key LIMIT ?", args.after, args.limit);
  const ids = open.map(({ id }) => id);
  const { changed, busy } = yield* applyRulesTo(ctx, { context: args.context, ids });
  return { next: open.length < args.limit ? null : (open.at(-1)?.key ?? null), changed, busy };
}

/** The same for these sessions. */
export function* applyRulesTo(
  ctx: TxContext,
  args: { context: CommandContext; ids: readonly string[] },
): Tx<Omit<RuledBatch, 'next'>> {
  if (args.ids.length === 0) return { changed: 0, busy: [] };
  const scope = yield* enter(ctx, args.context);
  const loaded = yield* lockSessions(ctx, args.ids);
  const moved = loaded.filter((one) => hasOtherDeadline(ctx, one));
  yield* applyEach(
    ctx,
    scope,
    moved.map((one) => ({ loaded: one, commands: [{ name: 'touch', by: 'system' }] })),
  );
  const read = new Set(loaded.map(({ session }) => session.id));
  return { changed: moved.length, busy: args.ids.filter((id) => !read.has(id)) };
}

function hasOtherDeadline({ rules }: TxContext, loaded: SessionWithTurns): boolean {
  const { session } = loaded;
  if (session.state === 'ended') return false;
  const { expiresAt, expiresCause } = deadlineOf(loaded, policyFor(rules, session.key), rules.resumeWindowMs);
  return expiresAt !== session.expiresAt || expiresCause !== session.expiresCause;
}
