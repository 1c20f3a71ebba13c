import { MoiraiError } from '../errors/moirai-error.ts';
import type { TokenUsage } from './commands.ts';
import type { Origin } from './session.ts';
import type {
  ApprovalDecision,
  EndCause,
  EndReason,
  Lineage,
  ResumeReason,
  SessionKind,
  SuspendReason,
  Trigger,
  TurnOutcome,
} from './states.ts';

/** What every event says about where it happened. Null where no session is concerned. */
export interface EventPlace {
  readonly session_id: string | null;
  readonly session_key: string | null;
  readonly platform: string | null;
  readonly user_id: string | null;
  readonly kind: SessionKind | null;
  readonly instance: string | null;
}

interface TurnFields {
  readonly turn_id: string;
  readonly chat_id: string | null;
  readonly thread_id: string | null;
  readonly chat_type: string | null;
  readonly message: string;
}

interface ApprovalFields {
  readonly approval_id: string;
  readonly turn_id: string;
  readonly tool: string;
  readonly summary: string;
  readonly expires_at: string;
}

/**
 * The fields of each event type with a fixed name. `command:<name>` events carry `CommandFields`. The `id` of a
 * `work:set_aside` is the work's and so the event's own: nothing is set aside twice.
 */
export interface EventFields {
  'session:start': { parent_id: string | null; lineage: Lineage | null; origin: Origin };
  'session:end': {
    reason: EndReason;
    cause: EndCause | null;
    trigger: Trigger;
    duration_ms: number;
    message_count: number;
    successor_id: string | null;
  };
  'session:reset': { old_session_id: string; new_session_id: string };
  'session:resume_pending': { reason: ResumeReason; turn_id: string };
  'session:resume': { turn_id: string };
  'session:suspend': { reason: SuspendReason; turn_id: string | null };
  'session:release': { reason: SuspendReason | null };
  'session:compress': { before_tokens: number; after_tokens: number; count: number };
  'session:title': { title: string | null };
  'agent:start': TurnFields;
  'agent:end': TurnFields & {
    outcome: TurnOutcome;
    response: string | null;
    model: string | null;
    usage: TokenUsage | null;
  };
  'agent:step': { turn_id: string; iteration: number; tool_names: readonly string[] };
  'delivery:sent': { delivery_id: string; attempts: number; error: null };
  'delivery:failed': { delivery_id: string; attempts: number; error: string };
  'approval:asked': ApprovalFields;
  'approval:answered': ApprovalFields & { decision: ApprovalDecision; by: string | null };
  'work:set_aside': { work: 'turn' | 'delivery' | 'tick' | 'event'; id: string; attempts: number; error: string };
  'hook:failed': { subscriber: string; event_id: string; attempts: number; error: string; dead: boolean };
  'gateway:startup': { platforms: readonly string[]; reason: string | null };
  'gateway:draining': { platforms: readonly string[]; reason: string | null };
  'gateway:shutdown': { platforms: readonly string[]; reason: string | null };
  'gateway:platform': { name: string; phase: string; problem: string | null; last_success_at: string | null };
  'platform:place': PlatformPlace & { change: 'added' | 'removed'; reason: string | null };
  'platform:message': PlatformPlace & { change: 'deleted'; message_id: string };
  'platform:reaction': PlatformPlace & {
    change: 'added' | 'removed';
    message_id: string;
    by: string | null;
    reaction: string;
  };
  'platform:member': PlatformPlace & { change: 'joined' | 'left'; by: string | null };
  'instance:lost': { instance: string; sessions: number };
}

/** Where on a chat platform something happened that is no message; `name` is the account, such as `telegram`. */
interface PlatformPlace {
  readonly name: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
}

export interface CommandFields {
  readonly command: string;
  readonly args: string;
}

export type FixedEventType = keyof EventFields;
export type EventType = FixedEventType | `command:${string}`;

/** The fixed event types as data, for matching and for the docs; the mapped type keeps the list complete. */
const EVENT_TYPE_TABLE: Record<FixedEventType, true> = {
  'session:start': true,
  'session:end': true,
  'session:reset': true,
  'session:resume_pending': true,
  'session:resume': true,
  'session:suspend': true,
  'session:release': true,
  'session:compress': true,
  'session:title': true,
  'agent:start': true,
  'agent:end': true,
  'agent:step': true,
  'delivery:sent': true,
  'delivery:failed': true,
  'approval:asked': true,
  'approval:answered': true,
  'work:set_aside': true,
  'hook:failed': true,
  'gateway:startup': true,
  'gateway:draining': true,
  'gateway:shutdown': true,
  'gateway:platform': true,
  'platform:place': true,
  'platform:message': true,
  'platform:reaction': true,
  'platform:member': true,
  'instance:lost': true,
};
export const EVENT_TYPES = Object.keys(EVENT_TYPE_TABLE) as FixedEventType[];

/** The fields, of whichever type, that hold what people, models or programs said. */
const WORDS: ReadonlySet<string> = new Set(['message', 'response', 'title', 'args', 'summary', 'error']);

/** The same event without what was said in it; itself when there is nothing of that kind. */
export function withoutWords(event: MoiraiEvent): MoiraiEvent {
  const said = ([field, value]: [string, unknown]): boolean =>
    (WORDS.has(field) && typeof value === 'string' && value !== '') || (field === 'origin' && value !== null);
  const entries = Object.entries(event);
  if (!entries.some(said)) return event;
  const silent = entries.map((entry) => (said(entry) ? [entry[0], entry[0] === 'origin' ? null : ''] : entry));
  return Object.fromEntries(silent) as MoiraiEvent;
}

/** An event as a transition makes it: the store adds id, place and time and writes it with the row. */
export type EventDraft =
  | {
      [T in FixedEventType]: { readonly type: T; readonly fields: EventFields[T] };
    }[FixedEventType]
  | { readonly type: `command:${string}`; readonly fields: CommandFields };

/** An event as everybody reads it. `seq` is added where events are listed, never in what a hook receives. */
export interface MoiraiEvent extends EventPlace {
  readonly id: string;
  readonly session_seq: number | null;
  readonly type: EventType;
  readonly at: string;
  readonly [field: string]: unknown;
}

/** `session:*`, `agent:start`, `agent:end` and `command:*` are numbered within their session; the rest is not. */
export function isNumbered(type: EventType): boolean {
  return type.startsWith('session:') || type.startsWith('command:') || type === 'agent:start' || type === 'agent:end';
}

/** Whether a subscription (`exact`, `prefix:*` or `*`) covers an event type. */
export function matches(pattern: string, type: string): boolean {
  if (pattern === '*' || pattern === type) return true;
  return pattern.endsWith(':*') && type.startsWith(pattern.slice(0, -1));
}

/** Refuses a subscription that no event can ever match, with the nearest valid name. */
export function assertPattern(pattern: string): void {
  if (pattern === '*' || EVENT_TYPES.some((type) => matches(pattern, type))) return;
  if (/^command:([a-z][a-z0-9_-]*|\*)$/.test(pattern)) return;
  const names = [...EVENT_TYPES, ...new Set(EVENT_TYPES.map((type) => `${type.split(':')[0]}:*`)), 'command:*', '*'];
  const nearest = nearestName(pattern, names);
  throw new MoiraiError('unknown_event', `no event is called "${pattern}"; did you mean "${nearest}"?`, {
    details: { pattern, nearest },
  });
}

/** What is longer is no name: comparing takes time. */
const LONGEST_NAME = 100;

/** The candidate with the smallest edit distance. */
export function nearestName(name: string, candidates: readonly string[]): string {
  let best = '';
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(name.slice(0, LONGEST_NAME), candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
