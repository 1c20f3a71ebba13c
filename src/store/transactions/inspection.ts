import { selectValues, Table, text } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';

const SETTINGS = new Table('settings', { name: text, value: text });

/** What the engine says of itself: its version and the settings that promises depend on. */
export function* engineSettings(ctx: TxContext, _args: Record<never, never>): Tx<Record<string, string>> {
  const rows = yield* SETTINGS.selectAs(ctx.dialect.settings);
  return Object.fromEntries(rows.map(({ name, value }) => [name, String(value)]));
}

/** What the engine finds wrong with its own files; null when it has no such check. */
export function* checkIntegrity(ctx: TxContext, _args: Record<never, never>): Tx<string[] | null> {
  if (ctx.dialect.integrityCheck === null) return null;
  const findings = yield* selectValues(text, ctx.dialect.integrityCheck);
  return findings.filter((finding) => finding !== 'ok');
}
