import { createHash } from 'node:crypto';
import { parseKey } from '../lifecycle/session-key.ts';
import type { MemoryScope, MemorySession } from './provider.ts';

/**
 * A child works for a conversation that several may share, under a key that does not say so: it speaks for nobody, and
 * has to be told what it needs.
 */
export function scopeOf({ kind, platform, userId, key }: Omit<MemorySession, 'id'>): MemoryScope {
  return { platform, userId: kind === 'child' ? null : userId, sessionKey: key };
}

/**
 * Whose memory it is: the person's where only they can read along, else the conversation's own. A shared group neither
 * hears what one of its members told in private, nor tells anybody outside what was said in it.
 */
export function ownerOf({ platform, userId, sessionKey }: MemoryScope): string {
  const isPersonal = userId !== null && userId !== '' && !isShared(sessionKey);
  return isPersonal ? JSON.stringify(['user', platform, userId]) : JSON.stringify(['conversation', sessionKey]);
}

/** The same as a name that is safe in paths, addresses and tags, and tells nobody who it is. */
export function ownerHash(scope: MemoryScope): string {
  return hashOf(ownerOf(scope));
}

/** The same of what `ownerOf` said. */
export function hashOf(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 32);
}

/** An owner for people to read: a person as `platform:user`, or the key of a conversation. */
export function readableOwner(owner: string): string {
  const [, ...parts] = JSON.parse(owner) as string[];
  return parts.join(':');
}

/** The hash of a person, given as `platform:user`. */
export function personHash(platform: string, userId: string): string {
  return hashOf(JSON.stringify(['user', platform, userId]));
}

function isShared(sessionKey: string): boolean {
  const { type, participant } = parseKey(sessionKey);
  return type !== 'dm' && participant === undefined;
}
