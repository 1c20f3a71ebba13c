import type { Engine } from '../engine/engine.ts';
import type { NewSubscriber } from '../events/dispatcher.ts';
import type { MoiraiEvent } from '../lifecycle/events.ts';
import { policyFor, type ResetRules } from '../lifecycle/reset-policy.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ResetCause, SessionKind } from '../lifecycle/states.ts';
import { deliverable } from '../turns/reply-target.ts';
import { expiredText, PARKED_IN_TURN_TEXT, rolledOverText, STUCK_TEXT } from '../turns/texts.ts';
import { outgoing } from './outgoing.ts';

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
    events: ['session:end', 'session:suspend'],
    handle: async (event) => {
      const { session_id: sessionId } = event;
      const session = sessionId === null ? null : await engine.store.read('getSession', { sessionId });
      if (session === null) return;
      if (event.type === 'session:end') await ended[session.kind]?.(session, event.id);
      if (!deliverable(session)) return;
      const text = noticeFor(event, session, rules());
      if (text === null) return;
      const deliveries = outgoing(session, text, null, `${event.id}:notice`);
      await engine.store.write('addDeliveries', {
        context: engine.commandContext(),
        sessionId: session.id,
        deliveries,
      });
    },
  };
}

/** What to say about an event; null for what needs no words. */
export function noticeFor(event: MoiraiEvent, session: Session, rules: ResetRules): string | null {
  if (event.type === 'session:suspend') {
    if (event.reason === 'stuck_loop') return STUCK_TEXT;
    // Who waits for nothing is told when they write.
    return event.turn_id === null ? null : PARKED_IN_TURN_TEXT;
  }
  const { notify, notifyExclude, idleMs } = policyFor(rules, session.key);
  if (!notify || notifyExclude.includes(session.platform)) return null;
  if (event.reason === 'auto_reset') return rolledOverText(event.cause as ResetCause, idleMs, session.id);
  if (event.reason === 'idle_expiry' || event.reason === 'daily_reset') {
    return expiredText(event.reason, idleMs, session.id);
  }
  return null;
}
