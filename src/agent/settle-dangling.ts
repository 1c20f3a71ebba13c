import type { MessageToAppend } from '../store/transactions/messages.ts';
import { effectiveRows } from './prompt.ts';
import { answeredCall, type ToolCall, type TranscriptRow, toolCallsOf, toolRow } from './transcript.ts';

/**
 * Answers for tool calls that the transcript ends with and that have none: the process died after the call was kept and
 * before its result was. Whether the tool did its work nobody knows, so it is told as unknown and never run again.
 */
export function settleDangling(transcript: readonly TranscriptRow[]): MessageToAppend[] {
  const rows = effectiveRows(transcript);
  const caller = rows.findLastIndex(({ role }) => role === 'assistant' || role === 'user');
  const row = rows[caller];
  if (row === undefined) return [];
  const answered = new Set(rows.slice(caller + 1).map(answeredCall));
  const dangling = toolCallsOf(row).filter(({ id }) => !answered.has(id));
  return dangling.map((call) => unknownRow(row.turnId, call));
}

function unknownRow(turnId: string | null, call: ToolCall): MessageToAppend {
  const text =
    `The outcome of this call of ${call.name} is unknown: the process stopped before it was recorded. It may or may not ` +
    'have taken effect, and it was not run again. Check before you repeat it.';
  return toolRow(turnId, call, { text, ok: false, unknown: true });
}
