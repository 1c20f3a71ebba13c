import type { Engine } from '../engine/engine.ts';
import type { Platform } from '../platforms/platform.ts';
import { isSentTo } from '../turns/reply-target.ts';
import { sentFromElsewhere } from '../turns/texts.ts';
import { outgoingTo } from './outgoing.ts';
import type { KeptFile } from './sent-files.ts';
import type { TargetPlace } from './targets.ts';

interface OutgoingNote {
  readonly place: TargetPlace;
  /** Who wrote it, or had it written. */
  readonly who: string;
  readonly text: string;
  readonly files?: readonly KeptFile[];
  readonly id: string;
  readonly platform: Platform | null;
}

/** Names what a session has sent elsewhere. */
export function idOfSent(sessionId: string, unique: string): string {
  return `${sessionId}:sent:${unique}`;
}

/** The id of what a session has sent elsewhere, by that of one of its messages; null for all other messages. */
export function sentIn(deliveryId: string): string | null {
  return /^(.+:sent:[\w-]+)(?::\d+)?$/.exec(deliveryId)?.[1] ?? null;
}

/**
 * Sends something to a place, in the name of a session that is open: on its way out and known to the agent of the
 * conversation there, so that an answer has context. With the same id again it changes nothing.
 */
export async function sendOut(
  engine: Engine,
  sessionId: string,
  { place, who, text, files = [], id, platform }: OutgoingNote,
): Promise<void> {
  const deliveries = isSentTo(place.platform)
    ? outgoingTo(place, text, platform, id, files.length === 0 ? {} : { files })
    : [];
  await engine.store.write('addExternalNote', {
    ...{ context: engine.commandContext(), sessionId, id, deliveries },
    ...{
      key: place.key,
      note: sentFromElsewhere(who, [text, ...files.map(fileLine)].filter((line) => line !== '').join('\n')),
    },
  });
}

function fileLine({ name }: KeptFile): string {
  return `[The file ${name}]`;
}
