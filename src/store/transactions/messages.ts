import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Command } from '../../lifecycle/commands.ts';
import { hasApplied, type Session } from '../../lifecycle/session.ts';
import type { SessionKind } from '../../lifecycle/states.ts';
import { MAX_PAGE_BYTES, pageSize } from '../limits.ts';
import { integer, nullableJson, nullableText, type RowOf, selectValues, Table, text } from '../table.ts';
import { storableText } from '../text.ts';
import { placeholders, type Query, query, type Tx, type TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import { type CommandContext, enterSession } from './sessions.ts';

export interface MessageToAppend {
  readonly role: string;
  readonly text: string;
  readonly turnId: string | null;
  readonly data?: Readonly<Record<string, unknown>> | null;
}

const columns = {
  sessionId: text,
  position: integer,
  role: text,
  text,
  at: integer,
  turnId: nullableText,
  data: nullableJson<Readonly<Record<string, unknown>>>(),
};

const MESSAGES = new Table('messages', columns);
const NUMBERED_MESSAGES = new Table('messages', { no: integer, ...columns });

export type Message = RowOf<typeof MESSAGES>;

/** Transcript rows after the first ones of a session; the caller's `append` command counts them in the same write. */
export function messageRows(
  ctx: TxContext,
  { id: sessionId }: Session,
  after: number,
  messages: readonly MessageToAppend[],
): Query[] {
  const rows = messages.map(({ role, text: body, turnId, data = null }, i) => ({
    sessionId,
    position: after + i + 1,
    role,
    text: storableText(body, `a message of session ${sessionId}`),
    at: ctx.now,
    turnId,
    data,
  }));
  return MESSAGES.insertMany(rows, ROWS_PER_INSERT);
}

/** Both engines bound the parameters of one statement. */
const ROWS_PER_INSERT = 500;

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
    rows: () => messageRows(ctx, loaded.session, loaded.session.messageCount, args.messages),
  });
  return after.session.messageCount;
}

/** Takes one piece of what was forgotten out of the full-text index; false when it is clean. */
export function* cleanIndex(ctx: TxContext, args: { first: boolean }): Tx<boolean> {
  return yield* ctx.dialect.cleanIndex(args.first);
}

/**
 * A page of one session's own transcript, oldest first. It is shorter than asked for where messages are long: only an empty
 * page is the end.
 */
export function* listMessages(
  _ctx: TxContext,
  args: { sessionId: string; after: number; limit: number },
): Tx<Message[]> {
  const { sessionId, after, limit } = args;
  const page = [sessionId, after, pageSize(limit)] as const;
  return yield* MESSAGES.select(
    `WHERE session_id = ? AND position > ? AND position <= (${END_OF_PAGE}) ORDER BY position`,
    sessionId,
    after,
    ...page,
  );
}

const BYTES = 'octet_length(text) + coalesce(octet_length(data), 0)';
/** The last message that begins within the bytes of a page, of those within its rows. */
const END_OF_PAGE = `SELECT max(position) FROM (
  SELECT position, sum(${BYTES}) OVER (ORDER BY position) - (${BYTES}) AS before FROM messages
  WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?
) sizes WHERE before < ${MAX_PAGE_BYTES}`;

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
  const [parent = null] = yield* selectValues(
    nullableText,
    "SELECT parent_id FROM sessions WHERE id = ? AND lineage IN ('resume', 'branch')",
    sessionId,
  );
  return parent;
}

/** Which sessions are searched: those of a conversation, or those of a kind. */
export type SearchedSessions = { readonly key: string } | { readonly kind: SessionKind };

/** Messages that contain all words, best match first. What is not indexed yet is not found: see `indexMessages`. */
export function* searchMessages(
  ctx: TxContext,
  args: { text: string; limit: number; within?: SearchedSessions },
): Tx<Message[]> {
  const words = storableText(args.text, 'the search text')
    .split(/\s+/u)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (words.length === 0) throw new MoiraiError('bad_input', 'the search text has no word in it');
  const { sql, params } = ctx.dialect.searchMessages(words, pageSize(args.limit), sessionsIn(args.within));
  const numbers = yield* selectValues(integer, sql, ...params);
  if (numbers.length === 0) return [];
  const rows = yield* NUMBERED_MESSAGES.select(`WHERE no IN (${placeholders(numbers.length)})`, ...numbers);
  const rank = new Map(numbers.map((no, i) => [no, i]));
  return rows.sort((a, b) => (rank.get(a.no) ?? 0) - (rank.get(b.no) ?? 0)).map(({ no: _, ...message }) => message);
}

function sessionsIn(within: SearchedSessions | undefined): Query | null {
  if (within === undefined) return null;
  return 'key' in within
    ? { sql: 'SELECT id FROM sessions WHERE key = ?', params: [within.key] }
    : { sql: 'SELECT id FROM sessions WHERE kind = ?', params: [within.kind] };
}
