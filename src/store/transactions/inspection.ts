import { nullableNumber, numberOf, query, queryOne, type Tx, type TxContext, textOf } from '../transaction.ts';

/** What the engine says of itself: its version and the settings that promises depend on. */
export function* engineSettings(ctx: TxContext, _args: Record<never, never>): Tx<Record<string, string>> {
  const rows = yield* query(ctx.dialect.settings);
  return Object.fromEntries(rows.map((row) => [textOf(row, 'name'), textOf(row, 'value')]));
}

/** What the engine finds wrong with its own files; null when it has no such check. */
export function* checkIntegrity(ctx: TxContext, _args: Record<never, never>): Tx<string[] | null> {
  if (ctx.dialect.integrityCheck === null) return null;
  const rows = yield* query(ctx.dialect.integrityCheck);
  return rows.map((row) => String(Object.values(row)[0])).filter((finding) => finding !== 'ok');
}

/** Sessions whose deadline has passed and that nobody has ended yet. */
export function* overdueSessions(
  ctx: TxContext,
  _args: Record<never, never>,
): Tx<{ count: number; oldest: number | null }> {
  const row = yield* queryOne(
    'SELECT count(*) AS n, min(expires_at) AS oldest FROM sessions WHERE check_at <= ? AND expires_at <= ?',
    ctx.now,
    ctx.now,
  );
  return row === undefined
    ? { count: 0, oldest: null }
    : { count: numberOf(row, 'n'), oldest: nullableNumber(row, 'oldest') };
}
