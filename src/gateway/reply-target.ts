import type { Session } from '../lifecycle/session.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';

/** Platforms whose people fetch replies, over HTTP or in the same process; nothing is sent to them. */
const FETCHED: ReadonlySet<string> = new Set(['api', 'web', 'cli', 'webhook']);

/** Whether replies of a session are sent to where it came from. */
export function deliverable({ kind, platform, origin }: Pick<Session, 'kind' | 'platform' | 'origin'>): boolean {
  return kind === 'chat' && origin !== null && isSentTo(platform);
}

/** False for a platform whose people look for themselves. */
export function isSentTo(platform: string): boolean {
  return !FETCHED.has(platform);
}

export function deliveryTo(session: Session, text: string, id: string): DeliveryToMake {
  return { id, platform: session.platform, target: session.origin ?? {}, text };
}
