import { buildKey, type Conversation, parseKey } from './session-key.ts';

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

/**
 * The id of a person as it tells them from everybody else on the platform of a conversation: whoever holds a key of HTTP
 * clients names people as they like, so a name means nothing under another key.
 */
export function userWithin({ platform, scope }: Pick<Conversation, 'platform' | 'scope'>, userId: string): string {
  const isNamedByKey = scope !== undefined && (platform === 'api' || platform === 'web');
  return isNamedByKey ? `${scope}:${userId}` : userId;
}

/** A person of a conversation, told from everybody on every platform; null where nobody has a name. */
export function personIn(key: string, userId: string | null): string | null {
  const conversation = parseKey(key);
  return userId === null ? null : `${conversation.platform}:${userWithin(conversation, userId)}`;
}
