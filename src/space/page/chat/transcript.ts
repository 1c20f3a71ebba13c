import type { KeptSession, Message } from '../data/kept-session.ts';
import type { Outcome } from './send-message.ts';

/** What is known of one session: its rows from a position on. */
export interface Part {
  readonly session: KeptSession;
  readonly rows: readonly Message[];
  /** How many rows before these are not loaded. */
  readonly before: number;
}

/** What the page itself has to say, between the rows of a transcript. */
export interface Note {
  readonly key: string;
  /** The command it answers. */
  readonly command: string | null;
  readonly text: string;
  readonly tone: 'plain' | 'error';
  /** What a person can do about it. */
  readonly retry: boolean;
  /** Where it stands: behind this row; null before everything, as there was nothing yet. */
  readonly place: { readonly sessionId: string; readonly position: number } | null;
  /** The message it came behind, as long as that is not answered. */
  readonly behind: string | null;
}

export interface Tool {
  readonly id: string;
  readonly name: string;
  /** Null while it runs. */
  readonly ok: boolean | null;
}

export type Item =
  | {
      readonly type: 'message';
      readonly key: string;
      readonly from: 'user' | 'agent';
      readonly text: string;
      readonly at: string;
      readonly partial: boolean;
    }
  | { readonly type: 'tools'; readonly key: string; readonly tools: readonly Tool[] }
  | { readonly type: 'remark'; readonly key: string; readonly text: string }
  | { readonly type: 'note'; readonly key: string; readonly note: Note }
  | { readonly type: 'end'; readonly key: string; readonly session: KeptSession; readonly last: boolean };

/**
 * What is shown of a conversation, oldest first. The agent's rows of turns that are told live are left out: `live` tells
 * them better.
 */
export function itemsOf(parts: readonly Part[], notes: readonly Note[], live: ReadonlySet<string>): Item[] {
  const items: Item[] = notes.flatMap((note) =>
    note.place === null && note.behind === null ? [{ type: 'note', key: note.key, note }] : [],
  );
  for (const [i, part] of parts.entries()) {
    const { session } = part;
    const own = notes.filter(({ place, behind }) => behind === null && place?.sessionId === session.id);
    let shown = 0;
    const tellUpTo = (position: number): void => {
      for (; shown < own.length; shown++) {
        const note = own[shown];
        if (note?.place === null || note === undefined || note.place.position > position) return;
        items.push({ type: 'note', key: note.key, note });
      }
    };
    const rows = withoutUndone(part.rows);
    for (const [j, row] of rows.entries()) {
      const shown = items.length;
      tellUpTo(row.position - 1);
      if (row.role === 'user' && shown === items.length) push(items, unansweredBefore(rows, j, session.id));
      if (row.role !== 'user' && row.turn_id !== null && live.has(row.turn_id)) continue;
      push(items, itemOf(row, session.id));
    }
    tellUpTo(Number.POSITIVE_INFINITY);
    const last = i === parts.length - 1;
    if (!last || session.state === 'ended') items.push({ type: 'end', key: `end-${session.id}`, session, last });
  }
  return items;
}

/** What stopped or failed leaves nothing but the question behind. */
function unansweredBefore(rows: readonly Message[], at: number, sessionId: string): Item | null {
  const [before, row] = [rows[at - 1], rows[at]];
  if (before?.role !== 'user' || before.turn_id === null || before.turn_id === row?.turn_id) return null;
  return { type: 'remark', key: `${sessionId}-${before.position}-none`, text: 'There was no reply.' };
}

/** Rows without those that were taken back. */
function withoutUndone(rows: readonly Message[]): Message[] {
  let kept: Message[] = [];
  for (const row of rows) {
    const from = row.role === 'undo' ? Number(row.data?.from) : Number.NaN;
    const to = Number(row.data?.to ?? Number.POSITIVE_INFINITY);
    if (!Number.isNaN(from)) kept = kept.filter(({ position }) => position < from || position > to);
    kept.push(row);
  }
  return kept;
}

function itemOf(row: Message, sessionId: string): Item | null {
  const key = `${sessionId}-${row.position}`;
  const remark = (text: string): Item => ({ type: 'remark', key, text });
  switch (row.role) {
    case 'user':
    case 'assistant': {
      if (row.text.trim() === '') return null;
      const from = row.role === 'user' ? 'user' : 'agent';
      return { type: 'message', key, from, text: row.text, at: row.at, partial: row.data?.partial === true };
    }
    case 'tool':
      return { type: 'tools', key, tools: [{ id: key, name: String(row.data?.name), ok: row.data?.ok === true }] };
    case 'undo':
      return remark('The last messages were taken back.');
    case 'summary':
      return remark('What was said before was summarised, to make room.');
    case 'setting':
      return typeof row.data?.model === 'string' ? remark(`Model: ${row.data.model}`) : null;
    case 'note':
      // With a turn it is meant for the agent alone.
      return row.turn_id === null ? remark(row.text) : null;
    default:
      return null;
  }
}

/** Tools that were used one after another stand in one line. */
function push(items: Item[], item: Item | null): void {
  if (item === null) return;
  const last = items.at(-1);
  if (item.type === 'tools' && last?.type === 'tools') {
    items[items.length - 1] = { ...last, tools: [...last.tools, ...item.tools] };
  } else items.push(item);
}

const ENDS: Readonly<Record<string, string>> = {
  user_reset: '/new',
  idle_expiry: 'a long time without a message',
  daily_reset: 'the daily reset',
  switched: 'another session was taken up',
  branched: '/branch',
  cli_close: 'closed from a terminal',
  api_close: 'closed over HTTP',
  admin_close: 'closed by an operator',
  reaped: 'whoever held it was lost',
  deleted: 'deleted',
};

const CAUSES: Readonly<Record<string, string>> = {
  idle: 'a long time without a message',
  daily: 'the daily reset',
  suspended: 'it had been interrupted too often',
  resume_expired: 'interrupted too long ago to go on',
};

/** Why a session ended, in words. */
export function endWords({ end_reason: reason, end_cause: cause }: KeptSession): string {
  if (reason === null) return 'ended';
  if (reason === 'auto_reset' && cause !== null) return CAUSES[cause] ?? cause;
  return ENDS[reason] ?? reason.replaceAll('_', ' ');
}

/** The note that an outcome without a reply leaves; null when the transcript tells it all. */
export function noteOf(outcome: Outcome): Pick<Note, 'text' | 'tone' | 'retry'> | null {
  if (outcome.turn_id === null) return { text: outcome.reply, tone: 'plain', retry: false };
  if (outcome.outcome === 'done') return null;
  if (outcome.outcome === 'interrupted') return { text: outcome.reply, tone: 'plain', retry: false };
  const { message = outcome.reply, hint = '' } = outcome.error ?? {};
  return { text: message.includes(hint) ? message : `${message}. ${hint}`, tone: 'error', retry: true };
}
