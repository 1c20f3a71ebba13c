import { query, type Tx } from '../transaction.ts';

/**
 * What a store is after it was restored: the processes it knew are not there, whatever their leases say, which other
 * clocks have timed. So their turns are interrupted and resumed, and what they had claimed is free.
 */
export function* settleRestored(now: number): Tx<void> {
  yield* query("UPDATE instances SET state = 'dead', lost_at = ? WHERE state = 'up'", now);
  yield* query('UPDATE lanes SET token = NULL, claimed_by = NULL, interrupted = 1 WHERE token IS NOT NULL');
  yield* query('DELETE FROM credentials');
}
