import type { EventDraft, EventFields } from './events.ts';
import { runningTurn, type Session, type SessionWithTurns, type Turn } from './session.ts';
import { parseKey } from './session-key.ts';

/** How a run ends that did not come to an answer. */
export const CUT_SHORT = { outcome: 'interrupted', response: null, model: null, usage: null } as const;

/** The end of the run that a session is in, if it is in one. */
export function interruptedRuns(current: SessionWithTurns): EventDraft[] {
  const running = runningTurn(current);
  return running === undefined ? [] : [agentEnd(current.session, running, CUT_SHORT)];
}

export function agentEnd(
  session: Session,
  turn: Turn,
  result: Omit<EventFields['agent:end'], keyof EventFields['agent:start']>,
): EventDraft {
  const response = result.response === null ? null : excerpt(result.response);
  const { outcome, model, usage } = result;
  return { type: 'agent:end', fields: { ...turnFields(session, turn), outcome, response, model, usage } };
}

/** What the events of a run say of its turn. */
export function turnFields(session: Session, turn: Turn): EventFields['agent:start'] {
  const place = parseKey(session.key);
  return {
    turn_id: turn.id,
    chat_id: place.chat ?? null,
    thread_id: place.thread ?? null,
    chat_type: place.type,
    message: excerpt(turn.text),
  };
}

const EXCERPT_CHARS = 500;

/** Events carry the beginning of a text; half a surrogate pair at the cut would be no text. */
function excerpt(text: string): string {
  if (text.length <= EXCERPT_CHARS) return text;
  const cut = text.slice(0, EXCERPT_CHARS);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}
