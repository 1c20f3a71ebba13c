import { integer, json, type RowOf, Table, text } from '../table.ts';
import { type Query, query, type Tx, type TxContext } from '../transaction.ts';

const columns = {
  /** Which platform has it. */
  platform: text,
  /** What stands for it in the text of the message until it is fetched. */
  line: text,
  /** In the platform's own words. */
  file: json<Readonly<Record<string, unknown>>>(),
};

const FILES = new Table('turn_files', columns);
const NEW_FILES = new Table('turn_files', { turnId: text, position: integer, ...columns });

/** A file that came with a message: the message is durable before anything of it is fetched. */
export type TurnFile = RowOf<typeof FILES>;

export function turnFileRows(turnId: string, files: readonly TurnFile[]): Query[] {
  return files.map((file, position) => NEW_FILES.insert({ turnId, position, ...file }));
}

/** The files of turns that become part of another one follow it, behind its own. */
export function* moveTurnFiles(into: string, turnIds: readonly string[]): Tx<void> {
  for (const [i, turnId] of turnIds.entries()) {
    const behind = (i + 1) * MOST_FILES;
    yield* query('UPDATE turn_files SET turn_id = ?, position = position + ? WHERE turn_id = ?', into, behind, turnId);
  }
}

/** More than any platform puts into one message. */
const MOST_FILES = 1000;

export function* turnFiles(_ctx: TxContext, args: { turnId: string }): Tx<TurnFile[]> {
  return yield* FILES.select('WHERE turn_id = ? ORDER BY position', args.turnId);
}
