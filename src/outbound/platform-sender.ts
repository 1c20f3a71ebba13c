import { abilitiesAt, measureAt } from '../platforms/abilities.ts';
import {
  type Outgoing,
  type Place,
  type Platform,
  type ReplyContext,
  type Sender,
  SendFailure,
  type SendRequest,
  type SentMessage,
} from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import { LATE_TEXT } from '../turns/texts.ts';
import type { EditPace } from './edit-pace.ts';
import type { Places } from './places.ts';
import { isLive, keyOfPart, type ReplyShape, shapeOfPart } from './reply-shape.ts';

export interface PlatformSenderDeps {
  readonly places: Places;
  readonly pace: EditPace;
  /** What was kept of the newest message of a conversation; null for nothing. */
  readonly latestReply: (sessionKey: string) => Promise<ReplyContext | null>;
  /** Something was sent that began a place of its own. */
  readonly opened: (request: SendRequest, place: Place) => Promise<void>;
  readonly now: () => number;
}

/** Sends what is in the outbox through a platform. */
export function platformSender(platform: Platform, deps: PlatformSenderDeps): Sender {
  return {
    name: platform.name,
    send: async (request, signal) => {
      const place = request.target as unknown as Place;
      try {
        const shape = await shapeNow(platform, place, request, deps);
        if (isLive(shape)) await deps.pace.turn(platform, place);
        const sent = await sendOrReplace(platform, place, { ...request, shape }, signal);
        if (sent.place !== undefined) await deps.opened(request, sent.place);
        return sent;
      } catch (thrown) {
        if (thrown instanceof SendFailure && thrown.kind === 'gone') {
          await deps.places.gone(platform.name, place, thrown.message);
        }
        throw settledFailure(platform, place, request.shape, thrown);
      }
    },
    beforeRepetition: async ({ key, target, shape }, signal) => {
      const place = target as unknown as Place;
      if (isSafeToRepeat(platform, place, shape)) return 'again';
      return (await platform.findSent?.(place, key, signal)) ?? (platform.findSent === undefined ? 'unknown' : 'again');
    },
  };
}

interface ShapedRequest extends Pick<SendRequest, 'key' | 'text'> {
  readonly shape: ReplyShape;
}

/** What it is beside its text, with the message that lets it through where its own does so no longer. */
async function shapeNow(
  platform: Platform,
  place: Place,
  { shape, sessionKey }: SendRequest,
  deps: PlatformSenderDeps,
): Promise<ReplyShape> {
  const own = (shape ?? {}) as ReplyShape;
  if (abilitiesAt(platform, place).needsReply === undefined) return own;
  const isGood = (reply: ReplyContext): boolean => reply.until === null || reply.until > deps.now();
  if (own.reply !== undefined && isGood(own.reply)) return own;
  const latest = await deps.latestReply(sessionKey);
  return latest !== null && isGood(latest) ? { ...own, reply: latest } : own;
}

async function sendOrReplace(
  platform: Platform,
  place: Place,
  { key, text, shape }: ShapedRequest,
  signal: AbortSignal,
): Promise<SentMessage> {
  const words = shape.late ? `${LATE_TEXT}\n\n${text}` : text;
  const message = messageOf(platform, place, key, words, shape);
  const { edit, stream } = shape;
  try {
    if (stream !== undefined && platform.resumeStream !== undefined) {
      return await platform.resumeStream(place, stream).finish(message, signal);
    }
    if (edit !== undefined && platform.edit !== undefined) {
      await platform.edit(place, edit, message, signal);
      return { messageId: edit };
    }
  } catch (thrown) {
    // Somebody removed it, or it is too old to be changed: then it is a message of its own.
    if (!(thrown instanceof SendFailure) || thrown.retryAfterMs !== null || thrown.kind === 'expired') throw thrown;
  }
  return sendParts(platform, place, { key, text: words, shape }, signal);
}

/** What was put into the outbox by a process that does not know the platform may be too long for it. */
async function sendParts(
  platform: Platform,
  place: Place,
  { key, text, shape }: ShapedRequest,
  signal: AbortSignal,
): Promise<SentMessage> {
  const parts = splitText(text, measureAt(platform, place));
  let sent: SentMessage | null = null;
  let at = place;
  for (const [i, part] of parts.entries()) {
    const own = shapeOfPart(i, parts.length, shape) ?? {};
    const here = await platform.send(at, messageOf(platform, at, keyOfPart(i, key), part, own), signal);
    // What is sent behind something that opened a place belongs there.
    at = here.place ?? at;
    sent = at === place ? here : { ...here, place: at };
  }
  return sent ?? platform.send(place, messageOf(platform, place, key, text, shape), signal);
}

function messageOf(platform: Platform, place: Place, key: string, text: string, shape: ReplyShape): Outgoing {
  const { buttons, replyTo, reply, details } = shape;
  const abilities = abilitiesAt(platform, place);
  return {
    key,
    text,
    ...(buttons !== undefined && abilities.buttons ? { buttons } : {}),
    ...(replyTo !== undefined ? { replyTo } : {}),
    ...(reply !== undefined ? { reply } : {}),
    ...(details !== undefined && abilities.details ? { details } : {}),
  };
}

/** The same again does not become a second message: it changes what is there, or the platform knows its key. */
function isSafeToRepeat(platform: Platform, place: Place, shape: ReplyShape | null): boolean {
  if (abilitiesAt(platform, place).idempotent === 'answers') return isLive(shape) || shape?.reply !== undefined;
  return isLive(shape) || abilitiesAt(platform, place).idempotent === true;
}

/** What can be repeated without harm is as good as not sent. */
function settledFailure(platform: Platform, place: Place, shape: ReplyShape | null, thrown: unknown): unknown {
  if (!(thrown instanceof SendFailure) || thrown.kind !== 'uncertain') return thrown;
  if (!isSafeToRepeat(platform, place, shape)) return thrown;
  return new SendFailure(thrown.message, thrown.retryAfterMs, 'transient');
}
