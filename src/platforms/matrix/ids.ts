import { textOf } from '../fields.ts';

/** The specification allows no longer ones. */
const MOST_ID = 255;

/** `!room`, `$event` or `@user:server` from outside; null for what is none. */
function idOf(sign: string, value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MOST_ID || value.length < 2 || !value.startsWith(sign)) return null;
  return /[\s\p{Cc}\p{Cf}]/u.test(value) || !value.isWellFormed() ? null : value;
}

export function roomIdOf(value: unknown): string | null {
  return idOf('!', value);
}

export function eventIdOf(value: unknown): string | null {
  return idOf('$', value);
}

export function userIdOf(value: unknown): string | null {
  const id = idOf('@', value);
  return id?.includes(':') ? id : null;
}

/** The server that a person or a room is of: what stands behind the first colon. */
export function serverOf(id: string): string | null {
  const at = id.indexOf(':');
  return at < 0 || at === id.length - 1 ? null : id.slice(at + 1);
}

/** What a person is called where no name of theirs is known. */
export function localpartOf(userId: string): string {
  return userId.slice(1, userId.indexOf(':'));
}

/** A position that the server gave: what it is made of is the server's own business. */
export function positionOf(value: unknown): string | null {
  const position = textOf(value, 4096);
  return position === null || position === '' || position !== value ? null : position;
}
