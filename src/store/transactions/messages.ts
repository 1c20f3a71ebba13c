import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command } from '../../lifecycle/commands.ts';
import { hasApplied, type SessionWithTurns } from '../../lifecycle/session.ts';
import { pageSize } from '../limits.ts';
import { storableText } from '../text.ts';
import {
  nullableText,
  numberOf,
  type Param,
  placeholders,
  type Query,
  query,
  queryOne,
  type Row,
  remembered,
  repeated,
  type Tx,
  type TxContext,
  textOf,
} from '../transaction.ts';
import { apply } from './apply.ts';
import { type CommandContext, enterSession } from './sessions.ts';

export interface MessageToAppend {
  readonly role: string;
  readonly text: string;
  readonly turnId: string | null;
  readonly data?: Readonly<Record<string, unknown>> | null;
}

export interface Message {
  readonly sessionId: string;
  readonly position: number;
  readonly role: string;
  readonly text: string;
  readonly at: number;
  readonly turnId: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** Transcript rows after the ones a session has; the caller's `append` command counts them in the same write. */
export function messageRows(ctx: TxContext, loaded: SessionWithTurns, messages: readonly MessageToAppend[]): Query[] {
  if (messages.length === 0) return [];
  const rows = messages.map(({ role, text, turnId, data }, i): Param[] => {
    const body = storableText(text, `a message of session ${loaded.session.id}`);
    const position = loaded.session.messageCount + i + 1;
    return [loaded.session.id, position, role, body, ctx.now, turnId, data ? JSON.stringify(data) : null];
  });
  const queries: Query[] = [];
  for (let first = 0; first < rows.length; first += ROWS_PER_INSERT) {
    const some = rows.slice(first, first + ROWS_PER_INSERT);
    queries.push({ sql: INSERT_MESSAGES(some.length), params: some.flat() });
  }
  return queries;
}

/** Both engines bound the parameters of one statement. */
const ROWS_PER_INSERT = 500;

const INSERT_MESSAGES = remembered(
  (count: number) => `INSERT INTO messages (session_id, position, role, text, at, turn_id, data)
    VALUES ${repeated('(?, ?, ?, ?, ?, ?, ?)', count)}`,
);

/** Brings the full-text index nearer to the transcript; false when nothing was left to do. */
export function* indexMessages(ctx: TxContext, args: { limit: number }): Tx<boolean> {
  if (ctx.dialect.indexMessages === null) return false;
  const added = yield* query(ctx.dialect.indexMessages, args.limit);
  return added.length === args.limit;
}

export function appendCommand(messages: readonly MessageToAppend[], epoch: number | null): Command[] {
  return messages.length === 0 ? [] : [{ name: 'append', messages: messages.length, epoch }];
}

/** Adds to the transcript in the middle of a turn, so that a crash loses no finished step. */
export function* appendMessages(
  ctx: TxContext,
  args: { context: CommandContext; sessionId: string; epoch: number | null; messages: readonly MessageToAppend[] },
): Tx<number> {
  const { scope, loaded } = yield* enterSession(ctx, args.context, args.sessionId);
  if (hasApplied(loaded.session, args.context.commandId)) return loaded.session.messageCount;
  const after = yield* apply(ctx, scope, loaded, appendCommand(args.messages, args.epoch), {
    rows: () => messageRows(ctx, loaded, args.messages),
  });
  return after.session.messageCount;
}

/** A page of one session's own transcript, oldest first. */
export function* listMessages(
  _ctx: TxContext,
  args: { sessionId: string; after: number; limit: number },
): Tx<Message[]> {
  const rows = yield* query(
    'SELECT * FROM messages WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?',
    args.sessionId,
    args.after,
    pageSize(args.limit),
  );
  return rows.map(toMessage);
}

/**
 * The chain of sessions whose transcripts a session continues, oldest first and itself last: resumed and branched
 * sessions see what came before them.
 */
export function* lineageOf(_ctx: TxContext, args: { sessionId: string }): Tx<string[]> {
  const chain = [args.sessionId];
  for (let id = yield* continuedBy(args.sessionId); id !== null && chain.length < 1000; id = yield* continuedBy(id)) {
    chain.unshift(id);
  }
  return chain;
}

function* continuedBy(sessionId: string): Tx<string | null> {
  const row = yield* queryOne(
    "SELECT parent_id FROM sessions WHERE id = ? AND lineage IN ('resume', 'branch')",
    sessionId,
  );
  return row === undefined ? null : nullableText(row, 'parent_id');
}

/** Messages that contain all words, best match first. What is not indexed yet is not found: see `indexMessages`. */
export function* searchMessages(ctx: TxContext, args: { text: string; limit: number }): Tx<Message[]> {
  const words = storableText(args.text, 'the search text')
    .split(/\s+/u)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (words.length === 0) throw new MoiraiError('bad_input', 'the search text has no word in it');
  const [found = []] = yield [ctx.dialect.searchMessages(words, pageSize(args.limit))];
  if (found.length === 0) return [];
  const numbers = found.map((row) => numberOf(row, 'message_no'));
  const rows = yield* query(`SELECT * FROM messages WHERE no IN (${placeholders(numbers.length)})`, ...numbers);
  const rank = new Map(numbers.map((no, i) => [no, i]));
  const order = (row: Row): number => rank.get(numberOf(row, 'no')) ?? 0;
  return rows.sort((a, b) => order(a) - order(b)).map(toMessage);
}

function toMessage(row: Row): Message {
  const data = nullableText(row, 'data');
  return {
    sessionId: textOf(row, 'session_id'),
    position: numberOf(row, 'position'),
    role: textOf(row, 'role'),
    text: textOf(row, 'text'),
    at: numberOf(row, 'at'),
    turnId: nullableText(row, 'turn_id'),
    data: data === null ? null : (JSON.parse(data) as Record<string, unknown>),
  };
}
