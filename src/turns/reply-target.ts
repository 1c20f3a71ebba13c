import type { Session } from '../lifecycle/session.ts';
import { parseKey, platformName } from '../lifecycle/session-key.ts';

/** Platforms whose people fetch replies, over HTTP or in the same process; nothing is sent to them. */
const FETCHED: ReadonlySet<string> = new Set(['api', 'web', 'cli', 'webhook']);

/** Whether replies of a session are sent to where it came from. */
export function deliverable({ kind, platform, origin }: Pick<Session, 'kind' | 'platform' | 'origin'>): boolean {
  return kind === 'chat' && origin !== null && isSentTo(platform);
}

/** The account through which a session's people are reached: `telegram`, `telegram@work`. */
export function accountOf({ key }: Pick<Session, 'key'>): string {
  return platformName(parseKey(key));
}

/** False for a platform whose people look for themselves. */
export function isSentTo(platform: string): boolean {
  return !FETCHED.has(platform);
}
