import type { Dialect } from '../dialect.ts';

/** Why a session is parked. Of those that are, it is not known any more who did it: a message starts a new one, as before. */
export function statements({ text }: Dialect): string[] {
  return [
    `ALTER TABLE sessions ADD COLUMN suspend_reason ${text}`,
    "UPDATE sessions SET suspend_reason = 'stuck_loop' WHERE state = 'suspended'",
  ];
}
