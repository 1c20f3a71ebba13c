import type { NewSubscriber } from '../events/dispatcher.ts';
import type { EventFields, MoiraiEvent } from '../lifecycle/events.ts';
import type { SessionKind } from '../lifecycle/states.ts';
import type { Store } from '../store/port.ts';
import type { LiveProvider } from './live-provider.ts';
import { type MemoryProvider, type MemorySession, wants } from './provider.ts';
import { scopeOf } from './scope.ts';
import { wholeTranscript } from './transcript.ts';

/** A server that thinks about a whole transcript takes its time. */
const TIMEOUT_MS = 120_000;
/** A memory service is often a small server: after an outage it must not get everything at once. */
const CONCURRENCY = 8;

export interface DeliverySettings {
  /** How long a provider may work on one event. */
  readonly timeoutMs: number;
  /** After how many failures an event becomes a dead letter. */
  readonly maxAttempts: number;
}

/**
 * What tells a provider of turns and ends: a subscriber of the log, which reads what was said from the store. So it does
 * not matter who ended a session, or whether a process died right after. Null when it wants to hear nothing.
 */
export function memorySubscriber(
  live: LiveProvider,
  store: Store,
  settings: Partial<DeliverySettings> = {},
): NewSubscriber | null {
  const { provider } = live;
  const events = eventsFor(provider);
  if (events.length === 0) return null;
  return {
    name: subscriberName(provider),
    events,
    from: 'now',
    timeoutMs: TIMEOUT_MS,
    ...settings,
    concurrency: CONCURRENCY,
    handle: async (event, signal) => {
      const session = sessionIn(event);
      const heard = HEARD.find(({ type }) => type === event.type);
      if (session === null || heard === undefined) return;
      // First: what a plugin wants to hear of is known once it is loaded.
      await live.ready();
      if (wants(provider, session.kind)) await live.hear(() => heard.tell({ provider, store, session, event, signal }));
    },
  };
}

/** How a provider is called in the log. */
export function subscriberName({ name }: Pick<MemoryProvider, 'name'>): string {
  return `memory:${name}`;
}

/** One event on its way to a provider. */
interface Delivery {
  readonly provider: MemoryProvider;
  readonly store: Store;
  readonly session: MemorySession;
  readonly event: MoiraiEvent;
  readonly signal: AbortSignal;
}

/** The events that providers hear of, each with the method that hears it. */
const HEARD = [
  { type: 'session:start', method: 'onSessionSwitch', tell: tellSwitch },
  { type: 'agent:end', method: 'syncTurn', tell: tellTurn },
  { type: 'session:end', method: 'onSessionEnd', tell: tellEnd },
] as const;

/** What a provider wants to hear of. */
export function eventsFor(provider: MemoryProvider): string[] {
  return HEARD.filter(({ method }) => provider[method] !== undefined).map(({ type }) => type);
}

function sessionIn({ session_id: id, session_key: key, platform, user_id: userId, kind }: MoiraiEvent) {
  if (id === null || key === null || platform === null || kind === null) return null;
  return { id, key, platform, userId, kind: kind as SessionKind };
}

async function tellEnd({ provider, store, session, event, signal }: Delivery): Promise<void> {
  const { reason, cause, duration_ms } = event as MoiraiEvent & EventFields['session:end'];
  const row = await store.read('getSession', { sessionId: session.id });
  const endedAt = Date.parse(event.at);
  const ended = {
    session: {
      ...session,
      title: row?.title ?? null,
      startedAt: endedAt - duration_ms,
      endedAt,
      parentId: row?.parentId ?? null,
      lineage: row?.lineage ?? null,
      removed: row === null,
    },
    scope: scopeOf(session),
    reason,
    cause,
    eventId: event.id,
    messages: row === null ? [] : await wholeTranscript(store, session.id),
  };
  await provider.onSessionEnd?.(ended, signal);
}

/** The event has the beginnings of both texts only. */
async function tellTurn({ provider, store, session, event, signal }: Delivery): Promise<void> {
  const { turn_id: turnId, outcome } = event as MoiraiEvent & EventFields['agent:end'];
  if (outcome !== 'done') return;
  const turn = await store.read('turnResult', { turnId });
  const text = await store.read('turnText', { turnId });
  // Deleted since, or a message that was taken into another turn: that one answers both.
  if (text === null || turn === null || turn.response === null || turn.startedAt === null) return;
  const { response } = turn;
  const finished = { scope: scopeOf(session), sessionId: session.id, turnId, eventId: event.id, text, response };
  await provider.syncTurn?.(finished, signal);
}

async function tellSwitch({ provider, session, event, signal }: Delivery): Promise<void> {
  const { parent_id: from, lineage } = event as MoiraiEvent & EventFields['session:start'];
  if (from === null || lineage === null || lineage === 'spawn') return;
  const change = { scope: scopeOf(session), eventId: event.id, from, to: session.id, lineage };
  await provider.onSessionSwitch?.(change, signal);
}
