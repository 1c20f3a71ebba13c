import type { TokenUsage } from '../lifecycle/commands.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';

/** A tool call as the assistant row that makes it remembers it. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

/** What came of a call, as the model reads it. */
export interface ToolOutcome {
  readonly text: string;
  readonly ok: boolean;
  /** It is not known whether it took effect. */
  readonly unknown?: true;
}

/** A row the agent reads: of the store, or just written in this turn. */
export type TranscriptRow = Pick<Message, 'sessionId' | 'position' | 'role' | 'text' | 'turnId' | 'data'>;

export function userRow(turnId: string | null, text: string, note: string | null = null): MessageToAppend {
  return { role: 'user', text, turnId, data: note === null ? null : { note } };
}

export function assistantRow(
  turnId: string | null,
  text: string,
  data: { toolCalls?: readonly ToolCall[]; partial?: true; usage?: TokenUsage } = {},
): MessageToAppend {
  return { role: 'assistant', text, turnId, data: Object.keys(data).length === 0 ? null : { ...data } };
}

export function toolRow(turnId: string | null, call: ToolCall, outcome: ToolOutcome): MessageToAppend {
  const { text, ok, unknown } = outcome;
  const data = { toolCallId: call.id, name: call.name, ok, ...(unknown ? { unknown } : {}) };
  return { role: 'tool', text, turnId, data };
}

export function noteRow(turnId: string | null, text: string): MessageToAppend {
  return { role: 'note', text, turnId, data: null };
}

/** The calls of an assistant row; none for every other row. */
export function toolCallsOf(row: Pick<TranscriptRow, 'role' | 'data'>): readonly ToolCall[] {
  const calls = row.role === 'assistant' ? row.data?.toolCalls : undefined;
  return Array.isArray(calls) ? calls.filter(isToolCall) : [];
}

/** The id of the call that a tool row answers. */
export function answeredCall(row: Pick<TranscriptRow, 'role' | 'data'>): string | null {
  const id = row.role === 'tool' ? row.data?.toolCallId : undefined;
  return typeof id === 'string' ? id : null;
}

/** A position that a `summary` or `undo` row names. */
export function positionOf(row: Pick<TranscriptRow, 'data'>, field: 'upTo' | 'from' | 'to'): number | null {
  const position = row.data?.[field];
  return typeof position === 'number' ? position : null;
}

/** Whether an `undo` row takes a row back: those from a position on, up to another where newer messages came in between. */
export function isUndoneBy(
  row: Pick<TranscriptRow, 'sessionId' | 'position'>,
  undo: Pick<TranscriptRow, 'sessionId' | 'data'>,
): boolean {
  const from = positionOf(undo, 'from');
  if (from === null || row.sessionId !== undo.sessionId) return false;
  return row.position >= from && row.position <= (positionOf(undo, 'to') ?? Number.POSITIVE_INFINITY);
}

/** What the model server counted for an assistant row: all it read, and what it wrote. */
export function usageOf(row: Pick<TranscriptRow, 'role' | 'data'>): TokenUsage | null {
  const usage = row.role === 'assistant' ? row.data?.usage : undefined;
  if (typeof usage !== 'object' || usage === null) return null;
  const { input, output } = usage as Partial<Record<keyof TokenUsage, unknown>>;
  return typeof input === 'number' && typeof output === 'number' ? { input, output } : null;
}

/** Rows not yet read back from the store, numbered as the store will number them: after the last of their session. */
export function numbered(
  rows: readonly TranscriptRow[],
  sessionId: string,
  added: readonly MessageToAppend[],
): TranscriptRow[] {
  const last = rows.findLast((row) => row.sessionId === sessionId)?.position ?? 0;
  return added.map(({ role, text, turnId, data }, i) => ({
    ...{ sessionId, position: last + i + 1, role, text, turnId },
    data: data ?? null,
  }));
}

function isToolCall(value: unknown): value is ToolCall {
  if (typeof value !== 'object' || value === null) return false;
  const call = value as Partial<Record<keyof ToolCall, unknown>>;
  return typeof call.id === 'string' && typeof call.name === 'string';
}
