import { buildKey } from './session-key.ts';

/**
 * Which conversations are meant: those whose session key begins with one of these; null for all. API keys that are not
 * an admin's have a namespace of their own, which no other key can name.
 */
export type Within = readonly string[] | null;

/** The conversations of a namespace. One that was named outside of any namespace never begins so. */
export function namespaceOf(name: string): readonly string[] {
  return (['api', 'web'] as const).map((platform) => {
    const key = buildKey({ profile: 'main', platform, type: 'dm', scope: name, chat: 'x' });
    return key.slice(0, -'x:'.length);
  });
}

/** Whether a conversation is among those that are meant. What belongs to no conversation is only among all. */
export function isWithin(key: string | null, within: Within): boolean {
  return within === null || (key !== null && within.some((prefix) => key.startsWith(prefix)));
}
