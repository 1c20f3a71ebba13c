import type { TurnReport } from '../agent/runner.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Platform } from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import { deliverable } from '../turns/reply-target.ts';
import type { ReplyShape } from './platform-sender.ts';

/** Rows of the outbox for a text of ours: one for each message it becomes, in order. None where nothing is sent. */
export function outgoing(
  session: Session,
  text: string,
  platform: Platform | null,
  id: string,
  shape: ReplyShape = {},
): DeliveryToMake[] {
  if (!deliverable(session) || text.trim() === '') return [];
  return outgoingTo({ platform: session.platform, target: session.origin ?? {} }, text, platform, id, shape);
}

/** The same for a place that is no session's. */
export function outgoingTo(
  place: Pick<DeliveryToMake, 'platform' | 'target'>,
  text: string,
  platform: Platform | null,
  id: string,
  shape: ReplyShape = {},
): DeliveryToMake[] {
  const parts = platform === null ? [text] : splitText(text, platform.abilities);
  return parts.map((part, i) => ({
    // Parts of one reply are sent in the order of their ids.
    id: i === 0 ? id : `${id}:${String(i + 1).padStart(4, '0')}`,
    platform: place.platform,
    target: place.target,
    text: part,
    shape: shapeOf(i, parts.length, shape),
  }));
}

/** The first part takes the place of what was shown; buttons belong under the last. */
function shapeOf(
  i: number,
  count: number,
  { edit, buttons, replyTo }: ReplyShape,
): Readonly<Record<string, unknown>> | null {
  const own = {
    ...(i === 0 && edit !== undefined ? { edit } : {}),
    ...(i === 0 && replyTo !== undefined ? { replyTo } : {}),
    ...(i === count - 1 && buttons !== undefined ? { buttons } : {}),
  };
  return Object.keys(own).length === 0 ? null : own;
}

export function footerOf({ model, usage }: Pick<TurnReport, 'model' | 'usage'>): string {
  return `${model} · ${usage.input + usage.output} tokens`;
}
