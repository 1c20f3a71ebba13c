import type { Button, Detail, ReplyContext } from '../platforms/platform.ts';
import type { KeptFile } from './sent-files.ts';

/** What a reply is beside its text, as its row in the outbox keeps it. */
export interface ReplyShape {
  /** The message it takes the place of. */
  readonly edit?: string;
  /** The stream that it ends, by its handle. */
  readonly stream?: string;
  readonly buttons?: readonly (readonly Button[])[];
  /** The message that it quotes. */
  readonly replyTo?: string;
  /** The message that it answers, as far as its platform needs it. */
  readonly reply?: ReplyContext;
  readonly details?: readonly Detail[];
  readonly files?: readonly KeptFile[];
  /** It could not be sent when it was due, and says so. */
  readonly late?: true;
}

/** Whether it takes the place of what people have watched growing. */
export function isLive(shape: ReplyShape | null): boolean {
  return shape?.edit !== undefined || shape?.stream !== undefined;
}

/** Every message that a reply becomes has a key of its own. */
export function keyOfPart(part: number, key: string): string {
  return part === 0 ? key : `${key}:part${part + 1}`;
}

/** The reply that a message with this key is a part of. */
export function keyOfReply(key: string): string {
  return key.replace(/:part\d{1,6}$/, '');
}

/**
 * The shape of one of the messages that a reply becomes: the first takes the place of what was shown and quotes, buttons,
 * details and files belong under the last, and all of them answer the same message.
 */
export function shapeOfPart(part: number, count: number, shape: ReplyShape): ReplyShape | null {
  const { edit, stream, buttons, replyTo, reply, details, files, late } = shape;
  const isFirst = part === 0;
  const isLast = part === count - 1;
  const own: ReplyShape = {
    ...(isFirst && edit !== undefined ? { edit } : {}),
    ...(isFirst && stream !== undefined ? { stream } : {}),
    ...(isFirst && replyTo !== undefined ? { replyTo } : {}),
    ...(isFirst && late !== undefined ? { late } : {}),
    ...(reply !== undefined ? { reply } : {}),
    ...(isLast && buttons !== undefined ? { buttons } : {}),
    ...(isLast && details !== undefined ? { details } : {}),
    ...(isLast && files !== undefined ? { files } : {}),
  };
  return Object.keys(own).length === 0 ? null : own;
}
