import type { Dialect } from '../dialect.ts';

/** How the person who wrote a message was called when it was accepted; who it was, `user_id` has said from the start. */
export function statements({ text }: Dialect): string[] {
  return [`ALTER TABLE turns ADD COLUMN user_name ${text}`];
}
