import type { EndView } from '../protocol.ts';
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
  /** Why it is `suspended`; null in every other state. */
  readonly suspend_reason: string | null;
  readonly tokens: { readonly input: number; readonly output: number };
}

/** A row of a transcript. */
export interface Message {
  readonly role: string;
  readonly text: string;
  readonly at: string;
  readonly turn_id: string | null;
  readonly position: number;
  readonly data: Readonly<Record<string, unknown>> | null;
}

export interface LoggedEvent {
  readonly id: string;
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly [field: string]: unknown;
}

interface Page<T, Cursor = string | null> {
  readonly data: readonly T[];
  readonly next: Cursor;
}

export function pathOf(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}

export function askSession(source: Source, id: string): Promise<KeptSession> {
  return askJson<KeptSession>(source, pathOf(id));
}

type Query = Readonly<Record<string, string | number | null>>;

/** Parameters that are null or '' are left out. */
function withQuery(path: string, query: Query): string {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== '');
  return `${path}?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}`;
}

/** One page of the sessions that match a query. */
export function askSessions(source: Source, query: Query, init?: RequestInit): Promise<Page<KeptSession>> {
  return askJson<Page<KeptSession>>(source, withQuery('/v1/sessions', query), init);
}

/** Messages behind the position `cursor`, oldest first; null begins at the first one. */
export async function askMessages(
  source: Source,
  id: string,
  query: { readonly cursor: number | null; readonly limit: number },
  init?: RequestInit,
): Promise<readonly Message[]> {
  return (await askJson<Page<Message>>(source, withQuery(`${pathOf(id)}/messages`, query), init)).data;
}

export function askEvents(source: Source, id: string, query: Query): Promise<Page<LoggedEvent, number>> {
  return askJson<Page<LoggedEvent, number>>(source, withQuery(`${pathOf(id)}/events`, query));
}

/** How a session ended; null while it has not. */
export function endOf({ id, state, end_reason, end_cause, ended_at }: KeptSession): EndView | null {
  if (state !== 'ended') return null;
  return { id, reason: end_reason ?? 'unknown', cause: end_cause, at: ended_at ?? '' };
}

/** The reason of an end, and its cause where there is one. */
export function reasonOf(reason: string | null, cause: string | null): string {
  return cause === null ? (reason ?? 'unknown') : `${reason ?? 'unknown'} (${cause})`;
}
