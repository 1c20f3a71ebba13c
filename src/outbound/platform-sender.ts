import { abilitiesAt, measureAt } from '../platforms/abilities.ts';
import {
  type Outgoing,
  type OutgoingFile,
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
import { readToSend } from './sent-files.ts';
import type { SentParts } from './sent-parts.ts';

export interface PlatformSenderDeps {
  readonly places: Places;
  readonly pace: EditPace;
  /** Of every platform together: keys are of one message each. */
  readonly parts: SentParts;
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
        assertOpens(platform, place);
        const shape = await shapeNow(platform, place, request, deps);
        if (isLive(shape)) await deps.pace.turn(platform, place);
        const files = await readToSend(shape.files ?? [], abilitiesAt(platform, place), platform.name);
        const sent = await sendOrReplace(platform, place, { ...request, shape, files }, deps.parts, signal);
        if (sent.place !== undefined) await deps.opened(request, sent.place);
        return sent;
      } catch (thrown) {
        if (thrown instanceof SendFailure && thrown.kind === 'gone') {
          await deps.places.gone(platform.name, place, thrown.message);
        }
        throw settledFailure(platform, place, request.shape, thrown);
      }
    },
    beforeRepetition: async ({ key, target, text, shape }, signal) => {
      const place = target as unknown as Place;
      if (isSafeToRepeat(platform, place, shape)) return 'again';
      if (platform.findSent === undefined) return 'unknown';
      return (
        (await findParts(platform, place, { key, text, shape: shape ?? {}, files: [] }, deps.parts, signal)) ?? 'again'
      );
    },
  };
}

/** Elsewhere it would become a message like any other, without its title. */
function assertOpens(platform: Platform, place: Place): void {
  if (place.opens === undefined || abilitiesAt(platform, place).opens) return;
  throw new SendFailure(`no posts can be opened on ${platform.name}`, null, 'bad_format');
}

interface ShapedRequest extends Pick<SendRequest, 'key' | 'text'> {
  readonly shape: ReplyShape;
  /** The files of its shape, read. */
  readonly files: readonly OutgoingFile[];
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
  request: ShapedRequest,
  arrived: SentParts,
  signal: AbortSignal,
): Promise<SentMessage> {
  const whole = { ...request, text: wordsOf(request.text, request.shape) };
  const message = messageOf(platform, place, whole);
  const { edit, stream } = request.shape;
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
  return sendParts(platform, place, whole, arrived, signal);
}

function wordsOf(text: string, { late }: ReplyShape): string {
  return late ? `${LATE_TEXT}\n\n${text}` : text;
}

/** What was put into the outbox by a process that does not know the platform may be too long for it. */
async function sendParts(
  platform: Platform,
  place: Place,
  whole: ShapedRequest,
  arrived: SentParts,
  signal: AbortSignal,
): Promise<SentMessage> {
  const { key, text, shape, files } = whole;
  const parts = splitText(text, measureAt(platform, place));
  if (parts.length < 2)
    return platform.send(place, messageOf(platform, place, { ...whole, text: parts[0] ?? text }), signal);
  for (const [i, part] of parts.entries()) {
    const before = arrived.of(key);
    if (i < (before?.count ?? 0)) continue;
    // What is sent behind something that opened a place belongs there.
    const at = before?.place ?? place;
    const own = { key: keyOfPart(i, key), text: part, shape: shapeOfPart(i, parts.length, shape) ?? {}, files };
    const message = messageOf(platform, at, own);
    arrived.note(key, await platform.send(at, message, signal));
  }
  return allOf(key, arrived) ?? platform.send(place, messageOf(platform, place, whole), signal);
}

/** Looks for each message that something becomes; null where one is missing, and then those before it are known. */
async function findParts(
  platform: Platform,
  place: Place,
  { key, text, shape }: ShapedRequest,
  arrived: SentParts,
  signal: AbortSignal,
): Promise<SentMessage | null> {
  const count = splitText(wordsOf(text, shape), measureAt(platform, place)).length;
  for (let i = arrived.of(key)?.count ?? 0; i < Math.max(1, count); i += 1) {
    const found = (await platform.findSent?.(place, keyOfPart(i, key), signal)) ?? null;
    if (found === null) return null;
    arrived.note(key, found);
  }
  return allOf(key, arrived);
}

/** All of it is there: the last message, and the place that the first one opened. */
function allOf(key: string, arrived: SentParts): SentMessage | null {
  const all = arrived.of(key);
  arrived.forget(key);
  if (all === undefined) return null;
  return all.place === undefined ? all.last : { ...all.last, place: all.place };
}

function messageOf(platform: Platform, place: Place, { key, text, shape, files }: ShapedRequest): Outgoing {
  const { buttons, replyTo, reply, details } = shape;
  const abilities = abilitiesAt(platform, place);
  return {
    key,
    text,
    ...(buttons !== undefined && abilities.buttons ? { buttons } : {}),
    ...(replyTo !== undefined ? { replyTo } : {}),
    ...(reply !== undefined ? { reply } : {}),
    ...(details !== undefined && abilities.details ? { details } : {}),
    ...(shape.files !== undefined ? { files } : {}),
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
