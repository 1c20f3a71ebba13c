import { askJson, type Source } from './source.ts';

/** A session as it is kept, open or ended; `/v1/sessions` tells of it. */
export interface KeptSession {
  readonly id: string;
  readonly key: string;
  readonly kind: string;
  readonly platform: string;
  readonly user_id: string | null;
  readonly title: string | null;
  readonly state: string;
  readonly started_at: string;
  readonly last_activity_at: string;
  readonly expires_at: string | null;
  readonly ended_at: string | null;
  readonly end_reason: string | null;
  readonly end_cause: string | null;
  readonly parent_id: string | null;
  readonly lineage: string | null;
  readonly message_count: number;
  readonly owner: string | null;
  readonly last_heartbeat_at: string | null;
  readonly resume_reason: string | null;
  readonly tokens: { readonly input: number; readonly output: number };
}

export interface Message {
  readonly role: string;
  readonly text: string;
  readonly at: string;
  readonly position: number;
  readonly data: unknown;
}

export interface LoggedEvent {
  readonly id: string;
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly [field: string]: unknown;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly next: string | null;
}

export interface EndedQuery {
  readonly text: string;
  readonly kind: string;
  readonly reason: string;
  readonly cursor: string | null;
}

const ENDED_PAGE = 100;
const MESSAGES_PAGE = 50;
const EVENTS_PAGE = 100;

export function askSession(source: Source, id: string): Promise<KeptSession> {
  return askJson<KeptSession>(source, pathOf(id));
}

export function askEnded(source: Source, { text, kind, reason, cursor }: EndedQuery): Promise<Page<KeptSession>> {
  const query = new URLSearchParams({ state: 'ended', kind: kind || 'all', limit: String(ENDED_PAGE) });
  if (text !== '') query.set('q', text);
  if (reason !== '') query.set('reason', reason);
  if (cursor !== null) query.set('cursor', cursor);
  return askJson<Page<KeptSession>>(source, `/v1/sessions?${query}`);
}

/** Up to 50 messages before a position (the newest, when there is none). */
export async function askMessagesBefore(source: Source, id: string, before: number): Promise<readonly Message[]> {
  const after = Math.max(0, before - 1 - MESSAGES_PAGE);
  const limit = Math.max(1, before - 1 - after);
  return (await askJson<Page<Message>>(source, `${pathOf(id)}/messages?cursor=${after}&limit=${limit}`)).data;
}

export async function askMessagesAfter(source: Source, id: string, after: number): Promise<readonly Message[]> {
  return (await askJson<Page<Message>>(source, `${pathOf(id)}/messages?cursor=${after}&limit=200`)).data;
}

export async function askEvents(
  source: Source,
  id: string,
  after: number,
): Promise<{ events: readonly LoggedEvent[]; next: number; full: boolean }> {
  const path = `${pathOf(id)}/events?after=${after}&limit=${EVENTS_PAGE}`;
  const { data, next } = await askJson<{ data: readonly LoggedEvent[]; next: number }>(source, path);
  return { events: data, next, full: data.length === EVENTS_PAGE };
}

export function pathOf(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}
