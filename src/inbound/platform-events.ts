import type { Engine } from '../engine/engine.ts';
import { hasCode } from '../errors/moirai-error.ts';
import type { EventDraft } from '../lifecycle/events.ts';
import type { Logger } from '../log/logger.ts';
import type { Places } from '../outbound/places.ts';
import { keyOfReply } from '../outbound/reply-shape.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Place, Platform, PlatformEvent } from '../platforms/platform.ts';

export interface PlatformEventDeps {
  readonly engine: Engine;
  readonly places: Places;
  readonly log: Logger;
}

/**
 * Does what follows from something that happened on a platform and is no message, and writes it to the log. What happens in
 * places that nobody has talked to the agent in is not written: any stranger could fill the log with it. `refOf` names a
 * message as its turn does.
 */
export async function recordPlatformEvent(
  event: PlatformEvent,
  { name }: Platform,
  deps: PlatformEventDeps,
  refOf: (id: string) => string,
): Promise<void> {
  const { engine, places } = deps;
  if (event.kind === 'message_failed') {
    const { key, reason, expired: held } = event;
    const context = engine.commandContext();
    await engine.store.write('failSent', { context, deliveryId: keyOfReply(key), error: sanitize(reason, 500), held });
    return;
  }
  if (event.kind === 'added') await places.listed(name, [event.place]);
  if (!(await places.isKnown(name, event.place))) return;
  if (event.kind === 'removed') await places.gone(name, event.place, event.reason ?? 'the agent is not there any more');
  if (event.kind === 'message_deleted') await withdraw(deps, refOf(event.id));
  await engine.announce(draftOf(name, event));
}

/** Whoever takes a message back that nobody has begun to answer wants no answer. */
async function withdraw({ engine, log }: PlatformEventDeps, originRef: string): Promise<void> {
  const turn = await engine.store.read('turnByRef', { originRef });
  if (turn === null || turn.state !== 'queued') return;
  try {
    await engine.dropTurn(turn.sessionId, turn.id, 'interrupted', 'turn_stopped');
    log.info('a message was taken back before it was answered', { turn: turn.id });
  } catch (thrown) {
    // It was begun meanwhile, or is over.
    if (!hasCode(thrown, 'turn_not_found', 'illegal_move', 'session_ended')) throw thrown;
  }
}

type RecordedEvent = Exclude<PlatformEvent, { kind: 'message_failed' }>;
type PlatformDraft = Extract<EventDraft, { type: `platform:${string}` }>;

function draftOf(name: string, event: RecordedEvent): PlatformDraft {
  const at = { name, ...placeFields(event.place) };
  switch (event.kind) {
    case 'added':
    case 'removed': {
      const reason = event.reason === undefined ? null : sanitize(event.reason, 200);
      return { type: 'platform:place', fields: { ...at, change: event.kind, reason } };
    }
    case 'message_deleted':
      return { type: 'platform:message', fields: { ...at, change: 'deleted', message_id: event.messageId } };
    case 'reaction_added':
    case 'reaction_removed': {
      const change = event.kind === 'reaction_added' ? 'added' : 'removed';
      const { messageId, from, reaction } = event;
      const fields = { ...at, change, message_id: messageId, by: from.id, reaction: sanitize(reaction) } as const;
      return { type: 'platform:reaction', fields };
    }
    case 'member_joined':
    case 'member_left': {
      const change = event.kind === 'member_joined' ? 'joined' : 'left';
      return { type: 'platform:member', fields: { ...at, change, by: event.from.id } };
    }
  }
}

function placeFields({ chat, thread }: Place): { chat_id: string; thread_id: string | null } {
  return { chat_id: chat, thread_id: thread ?? null };
}
