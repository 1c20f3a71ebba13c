import type { TurnReport } from '../agent/runner.ts';
import type { Session } from '../lifecycle/session.ts';
import { measureAt } from '../platforms/abilities.ts';
import type { Place, Platform } from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';
import { type ReplyShape, shapeOfPart } from './reply-shape.ts';

/** Rows of the outbox for a text of ours: one for each message it becomes, in order. None where nothing is sent. */
export function outgoing(
  session: Session,
  text: string,
  platform: Platform | null,
  id: string,
  shape: ReplyShape = {},
): DeliveryToMake[] {
  if (!deliverable(session) || text.trim() === '') return [];
  return outgoingTo({ platform: accountOf(session), target: session.origin ?? {} }, text, platform, id, shape);
}

/** The same for a place that is no session's. What opens a place is one row: a second one would open a second place. */
export function outgoingTo(
  { platform: name, target }: Pick<DeliveryToMake, 'platform' | 'target'>,
  text: string,
  platform: Platform | null,
  id: string,
  shape: ReplyShape = {},
): DeliveryToMake[] {
  const place = target as unknown as Place;
  // What opens a place is one row: each of several would open one.
  const isWhole = platform === null || place.opens !== undefined || text === '';
  const parts = isWhole ? [text] : splitText(text, measureAt(platform, place));
  return parts.map((part, i) => ({
    // Parts of one reply are sent in the order of their ids.
    id: i === 0 ? id : `${id}:${String(i + 1).padStart(4, '0')}`,
    platform: name,
    target,
    text: part,
    shape: shapeOfPart(i, parts.length, shape) as Readonly<Record<string, unknown>> | null,
  }));
}

export function footerOf({ model, usage }: Pick<TurnReport, 'model' | 'usage'>): string {
  return `${model} · ${usage.input + usage.output} tokens`;
}
