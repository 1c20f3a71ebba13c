import { answeredCall, isUndoneBy, positionOf, type ToolCall, type TranscriptRow, toolCallsOf } from './transcript.ts';

interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

interface ToolCallPart {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

interface ToolResultPart {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output: { readonly type: 'text'; readonly value: string };
}

/** What a model reads, whatever API it is sent through. */
export type PromptMessage =
  | { role: 'user'; content: string }
  | { role: 'assistant'; content: string | (TextPart | ToolCallPart)[] }
  | { role: 'tool'; content: ToolResultPart[] };

/**
 * A rendering that can be taken up again: `messages` of the first `rows` rows never change by rows that come later,
 * since rows are only ever appended. What later rows may still touch is rendered anew.
 */
export interface Rendering {
  readonly rows: number;
  readonly messages: readonly PromptMessage[];
}

export interface Prompt {
  readonly messages: readonly PromptMessage[];
  /** The part that stays; null when a summary or an undo among the rows makes it not worth remembering. */
  readonly settled: Rendering | null;
}

/**
 * The transcript as the model reads it. What was sent for n rows is a prefix of what is sent for more of them, until a
 * `summary` or `undo` row says otherwise: the model server then recognises what it has read already.
 */
export function renderPrompt(rows: readonly TranscriptRow[], known: Rendering | null = null): Prompt {
  const from = known?.rows ?? 0;
  if (rows.slice(from).some(({ role }) => role === 'summary' || role === 'undo')) {
    const effective = effectiveRows(rows);
    return { messages: renderRows(effective).messages, settled: null };
  }
  const rest = renderRows(rows.slice(from));
  const before = known?.messages ?? [];
  return {
    messages: [...before, ...rest.messages],
    settled: { rows: from + rest.settledRows, messages: [...before, ...rest.messages.slice(0, rest.settledMessages)] },
  };
}

/** The rows that still count: nothing undone, nothing that a summary stands for. A summary comes before what it left. */
export function effectiveRows(rows: readonly TranscriptRow[]): TranscriptRow[] {
  let kept: TranscriptRow[] = [];
  for (const row of rows) {
    if (row.role === 'undo') kept = undone(kept, row);
    else if (row.role === 'summary') kept = summarised(kept, row);
    else if (row.role !== 'setting') kept.push(row);
  }
  return kept;
}

function undone(rows: TranscriptRow[], undo: TranscriptRow): TranscriptRow[] {
  return rows.filter((row) => row.role === 'summary' || !isUndoneBy(row, undo));
}

function summarised(rows: TranscriptRow[], summary: TranscriptRow): TranscriptRow[] {
  const upTo = positionOf(summary, 'upTo');
  if (upTo === null) return rows;
  // Rows of the sessions this one continues lie before its own; an older summary is part of the newer.
  const covered = (row: TranscriptRow): boolean => row.sessionId !== summary.sessionId || row.position <= upTo;
  return [summary, ...rows.filter((row) => row.role !== 'summary' && !covered(row))];
}

interface RenderedRows {
  readonly messages: PromptMessage[];
  readonly settledRows: number;
  readonly settledMessages: number;
}

function renderRows(rows: readonly TranscriptRow[]): RenderedRows {
  const messages: PromptMessage[] = [];
  let settledRows = 0;
  let settledMessages = 0;
  const first = firstSpoken(rows);
  for (let i = first; i < rows.length; ) {
    const end = endOfNotes(rows, i + 1);
    // Nothing may be remembered of a row whose notes, whose answers or whose sequel may still come. A person's row ends
    // everything before it but a reply taken up again, and that is decided by this very row.
    if (rows[i]?.role === 'user') [settledRows, settledMessages] = i === first ? [0, 0] : [i, messages.length];
    render(messages, rows, i, end, i === first ? notesIn(rows.slice(0, first)) : []);
    i = end;
  }
  return { messages, settledRows, settledMessages };
}

/** Notes from before the first message go with that message: two messages of a person in a row are refused by some. */
function firstSpoken(rows: readonly TranscriptRow[]): number {
  const first = endOfNotes(rows, 0);
  return rows[first]?.role === 'user' ? first : 0;
}

function notesIn(rows: readonly TranscriptRow[]): string[] {
  return rows.filter(({ role }) => role === 'note').map(({ text }) => bracketed(text));
}

function endOfNotes(rows: readonly TranscriptRow[], from: number): number {
  let end = from;
  while (end < rows.length && (rows[end]?.role === 'note' || rows[end]?.role === 'setting')) end += 1;
  return end;
}

/** Renders the row at `i`, whose notes reach to `end`; `before` goes with it if it is a person's. */
function render(
  messages: PromptMessage[],
  rows: readonly TranscriptRow[],
  i: number,
  end: number,
  before: readonly string[],
): void {
  const row = rows[i]!;
  const paragraphs = notesIn(rows.slice(i + 1, end));
  const note = typeof row.data?.note === 'string' ? bracketed(row.data.note) : '';
  if (row.role === 'user') addUser(messages, [...before, note, row.text, ...paragraphs]);
  else if (row.role === 'summary') addUser(messages, [SUMMARISED, row.text, ...paragraphs]);
  else if (row.role === 'tool') addToolResult(messages, row, paragraphs);
  else if (row.role === 'note') addToLast(messages, [bracketed(row.text), ...paragraphs]);
  else if (row.role === 'assistant') addAssistant(messages, row, paragraphs, rows, end);
}

function addAssistant(
  messages: PromptMessage[],
  row: TranscriptRow,
  paragraphs: readonly string[],
  rows: readonly TranscriptRow[],
  end: number,
): void {
  const made = answeredCalls(row, rows, end);
  if (made.length > 0) {
    const parts = made.map(({ id, name, args }): ToolCallPart => {
      return { type: 'tool-call', toolCallId: id, toolName: name, input: args ?? {} };
    });
    messages.push({ role: 'assistant', content: [...textParts([row.text, ...paragraphs]), ...parts] });
    return;
  }
  // A reply without an answer that goes on becomes part of what it answers: some servers refuse a prompt that ends with an
  // assistant's words, and others continue it inside the word.
  if (rows[end]?.role !== 'user') {
    const begun = row.text === '' ? '' : `[You had begun to answer this, and had written: ${row.text}]`;
    addToLast(messages, [begun, ...paragraphs]);
  } else if (row.text !== '' || paragraphs.length > 0) {
    messages.push({ role: 'assistant', content: joined([row.text, ...paragraphs]) });
  }
}

/** The calls whose result follows: a server refuses a call without its result. */
function answeredCalls(row: TranscriptRow, rows: readonly TranscriptRow[], from: number): readonly ToolCall[] {
  const made = toolCallsOf(row);
  if (made.length === 0) return made;
  const answers = new Set<string | null>();
  for (let i = from; i < rows.length; i += 1) {
    const next = rows[i]!;
    if (next.role === 'assistant' || next.role === 'user') break;
    answers.add(answeredCall(next));
  }
  return made.filter(({ id }) => answers.has(id));
}

function textParts(paragraphs: readonly string[]): TextPart[] {
  const text = joined(paragraphs);
  return text === '' ? [] : [{ type: 'text', text }];
}

function addToolResult(messages: PromptMessage[], row: TranscriptRow, paragraphs: readonly string[]): void {
  const id = answeredCall(row);
  const last = messages.at(-1);
  const results = last?.role === 'tool' ? last : null;
  const caller = results === null ? last : messages.findLast(({ role }) => role === 'assistant');
  // A result whose call was undone or summarised answers nothing.
  if (id === null || !calls(caller, id)) return;
  const value = joined([row.text, ...paragraphs]);
  const part = {
    ...{ type: 'tool-result' as const, toolCallId: id, toolName: String(row.data?.name ?? 'tool') },
    output: { type: 'text' as const, value },
  };
  if (results === null) messages.push({ role: 'tool', content: [part] });
  else results.content.push(part);
}

function calls(message: PromptMessage | undefined, id: string): boolean {
  if (message?.role !== 'assistant' || typeof message.content === 'string') return false;
  return message.content.some((part) => part.type === 'tool-call' && part.toolCallId === id);
}

function addUser(messages: PromptMessage[], paragraphs: readonly string[]): void {
  // A message without any text is refused by some servers.
  messages.push({ role: 'user', content: joined(paragraphs) || '[no text]' });
}

/** Notes go into the words before them: a person never wrote them, so they are no message. */
function addToLast(messages: PromptMessage[], paragraphs: readonly string[]): void {
  const last = messages.pop();
  if (last === undefined) addUser(messages, paragraphs);
  else if (last.role === 'user') addUser(messages, [last.content, ...paragraphs]);
  else if (last.role === 'tool') messages.push({ role: 'tool', content: withNotes(last.content, paragraphs) });
  else if (typeof last.content === 'string') {
    messages.push({ role: 'assistant', content: joined([last.content, ...paragraphs]) });
  } else messages.push({ role: 'assistant', content: [...textParts(paragraphs), ...last.content] });
}

function withNotes(results: readonly ToolResultPart[], paragraphs: readonly string[]): ToolResultPart[] {
  const last = results.at(-1);
  if (last === undefined) return [...results];
  const value = joined([last.output.value, ...paragraphs]);
  return [...results.slice(0, -1), { ...last, output: { type: 'text', value } }];
}

const bracketed = (text: string): string => `[${text}]`;

const joined = (paragraphs: readonly string[]): string => paragraphs.filter((text) => text !== '').join('\n\n');

const SUMMARISED = '[Earlier parts of this conversation were summarised to save space. The summary:]';
