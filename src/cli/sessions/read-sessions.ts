import { searchTranscripts } from '../../engine/transcript.ts';
import { isoTime, messageView, sessionView, statsView } from '../../engine/views.ts';
import type { Message } from '../../store/transactions/messages.ts';
import { type Answer, listing } from '../command.ts';
import { eventLine } from '../event-text.ts';
import { DEFAULT_PAGE } from '../options.ts';
import { facts, printable, shorten, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';
import { SESSION_HEADINGS, sessionFacts, sessionRow } from './session-text.ts';

/** What people mean by "my sessions"; the machine's own kinds are shown when asked for. */
export const DEFAULT_KINDS: readonly string[] = ['chat', 'cli', 'api'];

const EVENTS_SHOWN = 10;
const FOUND_CHARS = 300;

interface ListOptions {
  readonly kind?: readonly string[];
  readonly state?: readonly string[];
  readonly platform?: readonly string[];
  readonly reason?: readonly string[];
  readonly key?: string;
  readonly user?: string;
  readonly q?: string;
  readonly since?: number;
  readonly limit?: number;
  readonly cursor?: string;
}

export async function list({ store }: StoreSession, options: ListOptions): Promise<Answer> {
  const { kind, key = null } = options;
  // A key names a conversation of one kind already.
  const byDefault = kind === undefined && key === null;
  const kinds = byDefault ? DEFAULT_KINDS : (kind ?? []);
  const { sessions, next } = await store.read('listSessions', {
    kinds: kinds.includes('all') ? [] : kinds,
    states: options.state ?? [],
    reasons: options.reason ?? [],
    platforms: options.platform ?? [],
    key,
    user: options.user ?? null,
    text: options.q ?? null,
    since: options.since ?? null,
    limit: options.limit ?? DEFAULT_PAGE,
    cursor: options.cursor ?? null,
  });
  const text = table(SESSION_HEADINGS, sessions.map(sessionRow));
  const ofKinds = byDefault ? ` of the kinds ${DEFAULT_KINDS.join(', ')}; --kind all shows every kind` : '';
  return listing({ data: sessions.map(sessionView), text, none: `No sessions${ofKinds}.`, next });
}

export async function show({ store }: StoreSession, idOrPrefix: string): Promise<Answer> {
  const session = await store.read('findSession', { idOrPrefix });
  const lineage = await store.read('lineageOf', { sessionId: session.id });
  const events = await store.read('lastEvents', { sessionId: session.id, limit: EVENTS_SHOWN });
  const continues = lineage.length > 1 ? lineage.slice(0, -1).join(', ') : null;
  const lines = events.map((event) => `${eventLine(event, false)}\n`);
  return {
    json: sessionView(session),
    text: `${facts({ ...sessionFacts(session), continues })}\nLast events\n${lines.join('')}`,
  };
}

export async function messages(
  { store }: StoreSession,
  idOrPrefix: string,
  { limit = DEFAULT_PAGE, cursor: after = 0 }: { limit?: number; cursor?: number },
): Promise<Answer> {
  const session = await store.read('findSession', { idOrPrefix });
  const page = await store.read('listMessages', { sessionId: session.id, after, limit });
  const last = page.at(-1);
  const next = last !== undefined && last.position < session.messageCount ? String(last.position) : null;
  const text = page.map(messageText).join('');
  return listing({ data: page.map(messageView), text, none: 'No messages.', next });
}

export async function search(
  { store }: StoreSession,
  words: readonly string[],
  { limit = DEFAULT_PAGE }: { limit?: number },
): Promise<Answer> {
  const found = await searchTranscripts(store, words.join(' '), limit);
  const lines = found.map((message) => {
    return `${message.sessionId}  ${messageText({ ...message, text: shorten(message.text, FOUND_CHARS) })}`;
  });
  return listing({ data: found.map(messageView), text: lines.join(''), none: 'No messages.' });
}

/** A message for people: its further lines are indented, so that none can pass for another message. */
function messageText({ role, at, text }: Message): string {
  const lines = text.split(/\r?\n/).map(printable);
  return `${isoTime(at)}  ${printable(role)}: ${lines.join('\n    ')}\n`;
}

export async function stats({ store }: StoreSession): Promise<Answer> {
  const counted = await store.read('stats', {});
  const { total, open, openOwned, openUnowned, ended } = counted;
  const counts = {
    total,
    open,
    '  with a live owner': openOwned,
    '  without a live owner': openUnowned,
    ended: total - open,
  };
  const reasons = Object.entries(ended).map(([reason, n]) => [`  ${reason}`, n] as const);
  const text = facts(counts) + (reasons.length === 0 ? '' : facts(Object.fromEntries(reasons)));
  return { json: statsView(counted), text };
}
