import { resolveTarget, type TargetDeps } from '../outbound/targets.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';
import type { JobTarget } from './job-store.ts';

/**
 * Where the results of a job go that is made in a conversation: back to it. A terminal is gone by then, and so is a client
 * that asked once over HTTP: the results of their jobs go to the home channel.
 */
export function targetOf(
  conversation: Pick<ConversationRef, 'kind' | 'platform' | 'origin' | 'key' | 'attached'>,
): JobTarget {
  const stays = deliverable(conversation) || (!conversation.attached && conversation.kind !== 'cli');
  if (!stays) return { to: 'home' };
  return { to: 'place', platform: accountOf(conversation), target: conversation.origin ?? {}, key: conversation.key };
}

/** Where they go that an operator names. The home channel is the one there is when there is something to tell. */
export async function namedTarget(text: string, deps: Omit<TargetDeps, 'asker'>): Promise<JobTarget> {
  if (text.trim() === 'home') return { to: 'home' };
  const place = await resolveTarget(text, { ...deps, asker: null });
  return place === null ? { to: 'local' } : { to: 'place', ...place };
}
