import type { EventDraft } from '../lifecycle/events.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ApprovalAnswer, ApprovalDecision } from '../lifecycle/states.ts';
import {
  integer,
  nullableInteger,
  nullableText,
  nullableWord,
  type RowOf,
  selectValues,
  Table,
  text,
} from '../store/table.ts';
import { placeholders, query, type Tx, type TxContext } from '../store/transaction.ts';
import { placeOf, record } from '../store/transactions/record.ts';
import { type CommandContext, enterSession, type WriteScope } from '../store/transactions/sessions.ts';

/** Something an agent asks people to allow. */
const APPROVALS = new Table('approvals', {
  id: text,
  /** The session whose people are asked. */
  sessionId: text,
  sessionKey: text,
  /** The turn that asks: of that session, or of work that it delegated. */
  turnId: text,
  /** The process that waits for the answer. */
  instance: text,
  tool: text,
  /** What would be done, in one line a person can judge. */
  summary: text,
  /** Stands for the tool with these very arguments. */
  exact: text,
  /** The person whose turn asks, told from everybody on every platform; null where nobody has a name. */
  askedOf: nullableText,
  askedAt: integer,
  expiresAt: integer,
  decision: nullableWord<ApprovalDecision>(),
  /** Why it was refused, in the words of who did. */
  reason: nullableText,
  answeredBy: nullableText,
  answeredAt: nullableInteger,
  /** The command that answered it: the same again is the same answer. */
  answerId: nullableText,
});

export type ApprovalRow = RowOf<typeof APPROVALS>;

/** What was allowed for good. */
const RULES = new Table('approval_rules', {
  exact: text,
  id: text,
  tool: text,
  summary: text,
  madeBy: nullableText,
  madeAt: integer,
});

export type ApprovalRule = RowOf<typeof RULES>;

type NewApproval = Pick<ApprovalRow, 'id' | 'sessionId' | 'turnId' | 'tool' | 'summary' | 'exact' | 'askedOf'>;

/** Asks the people of a session. With the same id again it changes nothing. */
export function* askApproval(
  ctx: TxContext,
  { context, timeoutMs, ...asked }: NewApproval & { context: CommandContext; timeoutMs: number },
): Tx<ApprovalRow> {
  const { scope, loaded } = yield* enterSession(ctx, context, asked.sessionId);
  const known = yield* APPROVALS.selectOne('WHERE id = ?', asked.id);
  if (known !== undefined) return known;
  const unanswered = { decision: null, reason: null, answeredBy: null, answeredAt: null, answerId: null };
  const row: ApprovalRow = {
    ...asked,
    ...unanswered,
    sessionKey: loaded.session.key,
    instance: context.instanceId,
    askedAt: ctx.now,
    expiresAt: ctx.now + timeoutMs,
  };
  yield [APPROVALS.insert(row)];
  yield* write(ctx, scope, loaded.session, { type: 'approval:asked', fields: fieldsOf(row) });
  return row;
}

export interface AnswerArgs {
  readonly context: CommandContext;
  readonly id: string;
  readonly decision: ApprovalDecision;
  readonly by: string | null;
  readonly reason: string | null;
}

/**
 * Answers a question: the first answer counts. Returns the question as it is now, and whether this answer is the one that
 * counts; null when there is no such question. One that nobody waits for any longer expires instead.
 */
export function* answerApproval(
  ctx: TxContext,
  args: AnswerArgs,
): Tx<{ readonly approval: ApprovalRow; readonly counts: boolean } | null> {
  const found = yield* APPROVALS.selectOne('WHERE id = ?', args.id);
  if (found === undefined) return null;
  const { scope, loaded } = yield* enterSession(ctx, args.context, found.sessionId);
  // Read again under the lock of the conversation, which every answer takes.
  const asked = yield* APPROVALS.selectOne('WHERE id = ?', args.id);
  if (asked === undefined) return null;
  if (asked.decision !== null) return { approval: asked, counts: asked.answerId === args.context.commandId };
  const [isWaiting] = yield* selectValues(
    integer,
    `SELECT 1 FROM approvals a WHERE id = ? AND ${WAITS}`,
    args.id,
    ctx.now,
  );
  const answer = isWaiting === undefined ? { decision: 'expired' as const, by: null, reason: null } : args;
  const { decision, by, reason } = answer;
  const answerId = args.context.commandId;
  const approval = { ...asked, decision, reason, answeredBy: by, answeredAt: ctx.now, answerId };
  yield* query(
    'UPDATE approvals SET decision = ?, reason = ?, answered_by = ?, answered_at = ?, answer_id = ? WHERE id = ?',
    ...[decision, reason, by, ctx.now, answerId, args.id],
  );
  if (decision === 'always') {
    const { exact, id, tool, summary } = asked;
    yield [RULES.insert({ exact, id, tool, summary, madeBy: by, madeAt: ctx.now }, 'ON CONFLICT (exact) DO NOTHING')];
  }
  yield* write(ctx, scope, loaded.session, { type: 'approval:answered', fields: { ...fieldsOf(asked), decision, by } });
  ctx.effects.queues.add(APPROVAL_QUEUE);
  return { approval, counts: answer === args };
}

/** Wakes those who wait for an answer. */
export const APPROVAL_QUEUE = 'approvals';

/** The process that asked still runs the turn, and the question is not too old: of `approvals a`, with the time. */
const WAITS = `a.decision IS NULL AND a.expires_at > ? AND EXISTS (
  SELECT 1 FROM turns t JOIN sessions s ON s.id = t.session_id
  WHERE t.id = a.turn_id AND t.state = 'running' AND s.owner = a.instance)`;

export function* findApproval(_ctx: TxContext, { id }: { id: string }): Tx<ApprovalRow | null> {
  return (yield* APPROVALS.selectOne('WHERE id = ?', id)) ?? null;
}

/** What waits for a person, in one conversation or in all, oldest first. */
export function* waitingApprovals(ctx: TxContext, { key }: { key: string | null }): Tx<ApprovalRow[]> {
  const order = 'ORDER BY a.id';
  if (key === null) return yield* APPROVALS.select(`a WHERE ${WAITS} ${order}`, ctx.now);
  return yield* APPROVALS.select(`a WHERE a.session_key = ? AND ${WAITS} ${order}`, key, ctx.now);
}

/** Those of these questions that were answered. */
export function* answeredApprovals(_ctx: TxContext, { ids }: { ids: readonly string[] }): Tx<ApprovalRow[]> {
  if (ids.length === 0) return [];
  return yield* APPROVALS.select(`WHERE decision IS NOT NULL AND id IN (${placeholders(ids.length)})`, ...ids);
}

/** Questions without an answer that nobody waits for any longer: too old, or their process is gone. */
export function* abandonedApprovals(ctx: TxContext, { limit }: { limit: number }): Tx<string[]> {
  return yield* selectValues(
    text,
    `SELECT id FROM approvals a WHERE a.decision IS NULL AND NOT (${WAITS}) ORDER BY a.asked_at LIMIT ?`,
    ctx.now,
    limit,
  );
}

/** Whether these very arguments were allowed for good, or for the rest of this session. */
export function* grantedApproval(
  _ctx: TxContext,
  { sessionId, exact }: { sessionId: string; exact: string },
): Tx<Extract<ApprovalAnswer, 'session' | 'always'> | null> {
  const [rule] = yield* selectValues(text, 'SELECT id FROM approval_rules WHERE exact = ?', exact);
  if (rule !== undefined) return 'always';
  const granted = "SELECT id FROM approvals WHERE session_id = ? AND exact = ? AND decision = 'session'";
  const [answer] = yield* selectValues(text, granted, sessionId, exact);
  return answer === undefined ? null : 'session';
}

/** What was allowed for good, newest first. */
export function* listApprovalRules(_ctx: TxContext, _: object): Tx<ApprovalRule[]> {
  return yield* RULES.select('ORDER BY made_at DESC, id');
}

/** Takes back what was allowed for good; null when there is no such rule. */
export function* revokeApprovalRule(_ctx: TxContext, { id }: { id: string }): Tx<ApprovalRule | null> {
  const rule = yield* RULES.selectOne('WHERE id = ?', id);
  if (rule === undefined) return null;
  yield* query('DELETE FROM approval_rules WHERE id = ?', id);
  return rule;
}

function* write(ctx: TxContext, scope: WriteScope, session: Session, draft: ApprovalEvent): Tx<void> {
  const id = `${draft.fields.approval_id}:${draft.type === 'approval:asked' ? 'asked' : 'answered'}`;
  const place = placeOf(session, scope.context.instanceId);
  yield* record(ctx, scope.subscribers, [{ draft, id, sessionSeq: null, place }]);
}

type ApprovalEvent = Extract<EventDraft, { type: `approval:${string}` }>;

const SUMMARY_CHARS = 500;

function fieldsOf({
  id,
  turnId,
  tool,
  summary,
  expiresAt,
}: ApprovalRow): Extract<EventDraft, { type: 'approval:asked' }>['fields'] {
  return {
    approval_id: id,
    turn_id: turnId,
    tool,
    summary: summary.slice(0, SUMMARY_CHARS).toWellFormed(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}
