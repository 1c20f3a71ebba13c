import { type Fields, fieldsOf } from '../fields.ts';

/** Whether somebody came or went; null where neither happened, as when they change their name. */
export function comingOf(event: Fields): { readonly present: boolean } | null {
  const is = fieldsOf(event.content)?.membership;
  const unsigned = fieldsOf(event.unsigned);
  const was = fieldsOf(unsigned?.prev_content)?.membership;
  // There was something before, and the server does not say what.
  if (was === undefined && unsigned?.replaces_state !== undefined) return null;
  if (is === 'join') return was === 'join' ? null : { present: true };
  const isGone = is === 'ban' || is === 'leave';
  return isGone && (was === 'join' || was === undefined) ? { present: false } : null;
}

/** Whether this is the event by which somebody came into the room. */
export function isComing(event: Fields, userId: string): boolean {
  return event.type === 'm.room.member' && event.state_key === userId && comingOf(event)?.present === true;
}

/** Whether somebody came because they were invited. */
export function isAcceptance(event: Fields, userId: string): boolean {
  return isComing(event, userId) && fieldsOf(fieldsOf(event.unsigned)?.prev_content)?.membership === 'invite';
}

/**
 * Whether what is said from this event on is for somebody: they were invited, or came without having been. What is said
 * between an invite and the answer to it is said to them, too.
 */
export function isBeginning(event: Fields, userId: string): boolean {
  if (event.type !== 'm.room.member' || event.state_key !== userId) return false;
  if (fieldsOf(event.content)?.membership === 'invite') return true;
  return isComing(event, userId) && !isAcceptance(event, userId);
}

/** Whether this is the event by which somebody left the room. */
export function isGoing(event: Fields, userId: string): boolean {
  return event.type === 'm.room.member' && event.state_key === userId && comingOf(event)?.present === false;
}
