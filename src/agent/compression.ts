import type { MessageToAppend } from '../store/transactions/messages.ts';
import { estimateTokens } from './model/context-window.ts';
import { effectiveRows } from './prompt.ts';
import { type TranscriptRow, toolCallsOf, usageOf } from './transcript.ts';

/** Room is made before the window is full: the answer and a tool's result must still fit. */
const FULL_AT = 0.75;

/** How much of the window the rows that stay may fill. */
const STAYING_SHARE = 0.2;

const STAYING_TURNS = 3;

/** Fewer rows than this are not worth a summary, unless the server cannot read them at all. */
const FEWEST_ROWS = 4;

export interface CompressionPlan {
  /** What the summary stands for, oldest first. */
  readonly old: readonly TranscriptRow[];
  /** The last position of the session that the summary stands for; 0 when it stands only for earlier sessions. */
  readonly upTo: number;
}

export function isFull(tokens: number, window: number): boolean {
  return tokens > window * FULL_AT;
}

/**
 * How many tokens a prompt of these rows takes. The server's own count of the latest answer is better than a guess by
 * characters, but one from before a summary counts what is no longer sent.
 */
export function tokensOf(rows: readonly TranscriptRow[], fixedCharacters: number): number {
  const effective = effectiveRows(rows);
  const guess = estimateTokens(fixedCharacters + charactersOf(effective));
  const summary = effective.find(({ role }) => role === 'summary');
  const counts = (row: TranscriptRow): boolean =>
    summary === undefined || (row.sessionId === summary.sessionId && row.position > summary.position);
  const last = effective.findLastIndex((row) => usageOf(row) !== null && counts(row));
  if (last < 0) return guess;
  const usage = usageOf(effective[last]!) ?? { input: 0, output: 0 };
  return Math.max(guess, usage.input + usage.output + estimateTokens(charactersOf(effective.slice(last + 1))));
}

/**
 * Which rows a summary should stand for: all but the last turns, or all but the last steps of a turn that is itself too
 * long. Null when there is nothing to gain. With `force` few rows are better than none.
 */
export function planCompression(
  rows: readonly TranscriptRow[],
  sessionId: string,
  window: number,
  force = false,
): CompressionPlan | null {
  const effective = effectiveRows(rows);
  const old = effective.slice(0, cutOf(effective, sessionId, window * STAYING_SHARE));
  if (!isWorthIt(old) && !(force && old.length > 0)) return null;
  const upTo = old.findLast((row) => row.sessionId === sessionId && row.role !== 'summary')?.position ?? 0;
  return { old, upTo };
}

export function summaryRow(turnId: string | null, text: string, upTo: number): MessageToAppend {
  return { role: 'summary', text, turnId, data: { upTo } };
}

export const SUMMARY_REQUEST = `[The conversation grows too long to be read as a whole. Write a summary that takes the place
of everything above. Do not call tools and do not answer what was asked; write the summary only, in the language of the
conversation. Keep: what the person wants and has decided, in their words where the words matter; the latest request and how
far it got; facts, names, numbers, paths and addresses that may be needed again; what was done with tools, what came of it,
and what is unknown; what is still open. Leave out greetings and what is settled.]`;

const SHORT = 2_000;

/** What was said, in few words and as one text, the latest of it that fits: for rows that no server reads as they are. */
export function digest(rows: readonly TranscriptRow[], characters: number): string {
  const lines = rows.map((row) => {
    const text = row.text.length <= SHORT ? row.text : `${row.text.slice(0, SHORT)} [...]`;
    const names = toolCallsOf(row).map(({ name }) => name);
    return `${row.role}: ${text}${names.length === 0 ? '' : ` (called ${names.join(', ')})`}`;
  });
  let used = 0;
  const first = lines.findLastIndex((line) => {
    used += line.length + 1;
    return used > characters;
  });
  return lines.slice(first + 1).join('\n');
}

/** The first row that stays. */
function cutOf(rows: readonly TranscriptRow[], sessionId: string, budget: number): number {
  // A summary can only stand for all of the sessions before this one, or for none.
  const own = rows.findIndex((row) => row.sessionId === sessionId && row.role !== 'summary');
  const first = own < 0 ? rows.length : own;
  const isGood = (cut: number): boolean =>
    cut >= first && isWorthIt(rows.slice(0, cut)) && estimateTokens(charactersOf(rows.slice(cut))) <= budget;
  const turns = indexes(rows, ({ role }) => role === 'user').slice(-STAYING_TURNS);
  const steps = indexes(rows, (row) => toolCallsOf(row).length > 0);
  return turns.find(isGood) ?? steps.find(isGood) ?? rows.length;
}

function isWorthIt(old: readonly TranscriptRow[]): boolean {
  return old.filter(({ role }) => role !== 'note').length >= FEWEST_ROWS;
}

function indexes(rows: readonly TranscriptRow[], wanted: (row: TranscriptRow) => boolean): number[] {
  return rows.flatMap((row, i) => (wanted(row) ? [i] : []));
}

function charactersOf(rows: readonly TranscriptRow[]): number {
  let sum = 0;
  for (const row of rows) sum += row.text.length + (toolCallsOf(row).length > 0 ? JSON.stringify(row.data).length : 16);
  return sum;
}
