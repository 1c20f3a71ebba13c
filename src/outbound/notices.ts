import type { Engine } from '../engine/engine.ts';
import type { NewSubscriber } from '../events/dispatcher.ts';
import type { MoiraiEvent } from '../lifecycle/events.ts';
import { policyFor, type ResetRules } from '../lifecycle/reset-policy.ts';
import type { Session } from '../lifecycle/session.ts';
import { parseKey } from '../lifecycle/session-key.ts';
import type { ResetCause, SessionKind } from '../lifecycle/states.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Store } from '../store/port.ts';
import { deliverable } from '../turns/reply-target.ts';
import {
  expiredHereText,
  expiredText,
  PARKED_IN_TURN_TEXT,
  rolledOverText,
  STUCK_TEXT,
  unsentText,
} from '../turns/texts.ts';
import { outgoing } from './outgoing.ts';
import { sentIn } from './send-out.ts';

/** What is told when a session of a kind has ended that worked for somebody else. */
export type EndedHandlers = Readonly<
  Partial<Record<SessionKind, (session: Session, eventId: string) => Promise<void>>>
>;

/**
 * Tells people what happened to their session while nobody asked: a subscriber like any other, so that it does not matter
 * who ended the session, or whether a process died right after.
 */
export function noticesSubscriber(engine: Engine, rules: () => ResetRules, ended: EndedHandlers): NewSubscriber {
  return {
    name: 'gateway.notices',
    events: ['session:start', 'session:end', 'session:suspend', 'delivery:failed'],
    handle: async (event) => {
      const { session_id: sessionId } = event;
      const session = sessionId === null ? null : await engine.store.read('getSession', { sessionId });
      if (session === null) return;
      if (event.type === 'delivery:failed') return tellOfUnsent(engine, session, event);
      if (event.type === 'session:end') await ended[session.kind]?.(session, event.id);
      if (!deliverable(session)) return;
      const before = event.type === 'session:start' ? await sessionBefore(engine.store, session) : null;
      const notice = noticeFor(event, session, before, rules());
      if (notice === null) return;
      const deliveries = outgoing(session, notice.text, null, notice.id);
      await engine.store.write('addDeliveries', {
        context: engine.commandContext(),
        sessionId: session.id,
        deliveries,
      });
    },
  };
}

/** What an agent sent elsewhere is refused after its turn: it and its people would take it for sent. */
async function tellOfUnsent(
  engine: Engine,
  session: Session,
  { delivery_id: delivery, error }: MoiraiEvent,
): Promise<void> {
  const sent = sentIn(String(delivery));
  if (sent === null) return;
  const id = `${sent}:unsent`;
  const text = unsentText(sanitize(String(error), 500));
  await engine.store.write('addExternalNote', {
    ...{ context: engine.commandContext(), sessionId: session.id, id, key: session.key, note: text },
    deliveries: outgoing(session, text, null, id),
  });
}

/** Something to say; the same id again is the same notice again. */
interface Notice {
  readonly text: string;
  readonly id: string;
}

/** What to say about an event; null for what needs no words. `before` is the session that one replaces which starts. */
function noticeFor(event: MoiraiEvent, session: Session, before: Session | null, rules: ResetRules): Notice | null {
  const id = `${event.id}:notice`;
  if (event.type === 'session:suspend') {
    if (event.reason === 'stuck_loop') return { text: STUCK_TEXT, id };
    // Who waits for nothing is told when they write.
    return event.turn_id === null ? null : { text: PARKED_IN_TURN_TEXT, id };
  }
  const { notify, notifyExclude, idleMs } = policyFor(rules, session.key);
  if (notify === 'never' || notifyExclude.includes(session.platform)) return null;
  if (event.type === 'session:start') {
    // Who resumes or branches knows what ended.
    if (notify !== 'next' || session.lineage !== null || before === null || !isExpiry(before.endReason)) return null;
    return { text: rolledOverText(CAUSES[before.endReason], idleMs, before.id), id };
  }
  if (event.reason === 'auto_reset') {
    return { text: rolledOverText(event.cause as ResetCause, idleMs, session.id), id };
  }
  if (notify !== 'at_once' || !isExpiry(event.reason)) return null;
  if (parseKey(session.key).participant === undefined) {
    return { text: expiredText(event.reason, idleMs, session.id), id };
  }
  return { text: expiredHereText(event.reason, idleMs), id: idOfPlace(session, event.at) };
}

const CAUSES = { idle_expiry: 'idle', daily_reset: 'daily' } as const;

function isExpiry(reason: unknown): reason is keyof typeof CAUSES {
  return reason === 'idle_expiry' || reason === 'daily_reset';
}

/** Everybody there has a session of their own: one notice a day tells them all. */
function idOfPlace({ key, platform }: Session, at: string): string {
  const { scope = '', chat = '', thread = '' } = parseKey(key);
  return `expired:${JSON.stringify([platform, scope, chat, thread])}:${at.slice(0, 10)}`;
}

/** The session of the same conversation that ended before this one started. */
async function sessionBefore(store: Store, { id, key }: Session): Promise<Session | null> {
  const filter = { kinds: [], states: [], reasons: [], platforms: [], user: null, text: null, since: null };
  const { sessions } = await store.read('listSessions', { ...filter, key, limit: 10, cursor: null });
  return sessions[sessions.findIndex((other) => other.id === id) + 1] ?? null;
}
