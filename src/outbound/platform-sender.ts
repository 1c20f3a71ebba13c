import {
  type Button,
  type Outgoing,
  type Place,
  type Platform,
  type Sender,
  SendFailure,
  type SentMessage,
} from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import type { EditPace } from './edit-pace.ts';
import type { Places } from './places.ts';

/** What a reply is beside its text, as its row in the outbox keeps it. */
export interface ReplyShape {
  /** The message it takes the place of. */
  readonly edit?: string;
  readonly buttons?: readonly (readonly Button[])[];
  readonly replyTo?: string;
}

/** Sends what is in the outbox through a platform. */
export function platformSender(platform: Platform, places: Places, pace: EditPace): Sender {
  return {
    name: platform.name,
    async send(target, text, signal, shape) {
      const place = target as unknown as Place;
      try {
        const look = (shape ?? {}) as ReplyShape;
        if (look.edit !== undefined) await pace.turn(platform, place);
        return await sendOrEdit(platform, place, text, look, signal);
      } catch (thrown) {
        if (thrown instanceof SendFailure && thrown.kind === 'gone') {
          await places.gone(platform.name, place, thrown.message);
        }
        throw thrown;
      }
    },
  };
}

async function sendOrEdit(
  platform: Platform,
  place: Place,
  text: string,
  { edit, buttons, replyTo }: ReplyShape,
  signal: AbortSignal,
): Promise<{ messageId: string }> {
  const shown = buttons !== undefined && platform.abilities.buttons ? { buttons } : {};
  const message = { text, ...shown, ...(replyTo === undefined ? {} : { replyTo }) };
  if (edit !== undefined && platform.edit !== undefined) {
    try {
      await platform.edit(place, edit, message, signal);
      return { messageId: edit };
    } catch (thrown) {
      // Somebody removed it, or it is too old to be changed: then it is a message of its own.
      if (!(thrown instanceof SendFailure) || thrown.retryAfterMs !== null) throw thrown;
    }
  }
  return sendParts(platform, place, message, signal);
}

/** What was put into the outbox by a process that does not know the platform may be too long for it. */
async function sendParts(
  platform: Platform,
  place: Place,
  message: Outgoing,
  signal: AbortSignal,
): Promise<SentMessage> {
  const parts = splitText(message.text, platform.abilities);
  const last = parts.pop() ?? message.text;
  for (const text of parts) await platform.send(place, { text }, signal);
  return platform.send(place, { ...message, text: last }, signal);
}
