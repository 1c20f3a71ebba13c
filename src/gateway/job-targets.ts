import type { Party } from '../store/transactions/conversations.ts';
import type { JobTarget } from '../store/transactions/jobs.ts';
import { deliverable } from './reply-target.ts';
import { resolveTarget, type TargetDesk } from './targets.ts';

/**
 * Where the results of a job go that is made in a conversation: back to it. A terminal is gone by then, and one who asks
 * once over HTTP as well: what they made is told to the home channel.
 */
export function targetOf(party: Pick<Party, 'kind' | 'platform' | 'origin' | 'key' | 'attached'>): JobTarget {
  const stays = deliverable(party) || (!party.attached && party.kind !== 'cli');
  if (!stays) return { to: 'home' };
  return { to: 'place', platform: party.platform, target: party.origin ?? {}, key: party.key };
}

/** Where they go that an operator names. The home channel is the one there is when there is something to tell. */
export async function namedTarget(text: string, desk: Omit<TargetDesk, 'asker'>): Promise<JobTarget> {
  if (text.trim() === 'home') return { to: 'home' };
  const place = await resolveTarget(text, { ...desk, asker: null });
  return place === null ? { to: 'local' } : { to: 'place', ...place };
}
