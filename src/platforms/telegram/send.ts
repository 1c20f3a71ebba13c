import { InputFile } from 'grammy/web';
import { withDeadline } from '../deadline.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Button, type Outgoing, type OutgoingFile, type Place, SendFailure } from '../platform.ts';
import type { Bot, BotApi, CallSignal } from './bot-api.ts';
import { isRefusal, sendFailureOf, successorOf } from './failures.ts';
import { renderHtml } from './render.ts';

const MAX_CAPTION = 1024;
/** Texts are cut into messages before; a longer one is refused by the server in any form. */
const LONGEST_FORMATTED = 16_384;
const MAX_BUTTON_BYTES = 64;
const CALL_MS = 30_000;
const UPLOAD_MS = 300_000;
const MORE_TRIES = 3;
/** Telegram's own limit of an album. */
const ALBUM = 10;

/** How a call is made; what the server refuses is changed, each thing once. */
interface Form {
  readonly chat: string;
  /** True after the server named the chat that the group has become. */
  readonly followed: boolean;
  readonly thread: string | undefined;
  /** False after the server could not read our HTML: then the Markdown goes as it is. */
  readonly formatted: boolean;
  /** True after the server did not take a file for what it is said to be. */
  readonly asDocument: boolean;
}

/** One call of those that make up a message. */
interface Step {
  /** What is missing without it, for people. */
  readonly carries: string;
  /** Returns the id of what is shown then. */
  make(form: Form, signal: CallSignal): Promise<number>;
}

/** Calls that concern one chat, with what can be mended mended. */
export class Sending {
  readonly #bot: Bot;
  readonly #moved: (from: string, to: string) => void;
  /** Groups that have become another chat. Few ever do. */
  readonly #successors = new Map<string, string>();
  readonly gate: FloodGate;

  /** `moved` hears of a group that has become another chat. */
  constructor(bot: Bot, moved: (from: string, to: string) => void) {
    this.#bot = bot;
    this.gate = new FloodGate(bot.runtime);
    this.#moved = moved;
  }

  /** Sends a message, which may become several; returns the id of the last. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const [first, ...more] = stepsOf(this.#bot.api, message);
    let last = await this.call(place, signal, first.make, UPLOAD_MS);
    // What is there cannot be taken back, so a failure must not make the caller send all of it again.
    for (const step of more) last = (await this.#retryStep(place, step, signal)) ?? last;
    return String(last);
  }

  /** Makes a call. Throws `SendFailure`. */
  async call<T>(
    place: Place,
    signal: AbortSignal,
    call: (form: Form, signal: CallSignal) => Promise<T>,
    ms = CALL_MS,
  ): Promise<T> {
    const chat = this.#successors.get(place.chat) ?? place.chat;
    let form: Form = { chat, followed: false, thread: place.thread, formatted: true, asDocument: false };
    for (;;) {
      this.gate.check(form.chat);
      try {
        return await withDeadline(signal, ms, (deadline: CallSignal) => call(form, deadline));
      } catch (thrown) {
        const mended = this.#mend(form, thrown);
        if (mended === null) throw this.gate.note(form.chat, sendFailureOf(thrown, this.#bot.redact));
        form = mended;
      }
    }
  }

  #mend(form: Form, thrown: unknown): Form | null {
    const chat = successorOf(thrown);
    if (chat !== null && chat !== form.chat && !form.followed) {
      // Another call, refused at the same time, may have told of it already.
      if (!this.#successors.has(form.chat)) this.#moved(form.chat, chat);
      this.#successors.set(form.chat, chat);
      return { ...form, chat, followed: true };
    }
    if (form.formatted && isRefusal(thrown, /can't parse|unsupported start tag/i)) return { ...form, formatted: false };
    const isThreadGone = form.thread !== undefined && isRefusal(thrown, /thread not found|topic_(?:deleted|closed)/i);
    if (isThreadGone) return { ...form, thread: undefined };
    const isOddFile =
      !form.asDocument && isRefusal(thrown, /photo|image|voice|video|audio|sticker|wrong (?:type|file)/i);
    return isOddFile ? { ...form, asDocument: true } : null;
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #retryStep(place: Place, step: Step, signal: AbortSignal): Promise<number | null> {
    const { api, runtime, redact } = this.#bot;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.call(place, signal, step.make, UPLOAD_MS);
      } catch (thrown) {
        const { retryAfterMs, message } = sendFailureOf(thrown, redact);
        if (retryAfterMs === null || tries > MORE_TRIES || signal.aborted) {
          runtime.warn('a file was not sent', { error: message });
          break;
        }
        await new Promise<void>((resume) => runtime.after(retryAfterMs, resume));
      }
    }
    const notice = textStep(api, { text: `(${step.carries} could not be sent)` });
    return await this.call(place, signal, notice.make).catch(() => null);
  }
}

/** The calls that make up a message, the first with what matters most. */
function stepsOf(api: BotApi, message: Outgoing): readonly [Step, ...Step[]] {
  const { text, files = [] } = message;
  const [file, ...more] = files;
  if (file === undefined) return [textStep(api, message)];
  const isCaption = more.length === 0 && text.length <= MAX_CAPTION && file.kind !== 'sticker';
  if (isCaption) return [fileStep(api, file, message)];
  const uploads = isAlbum(files) ? [albumStep(api, files)] : files.map((each) => fileStep(api, each, { text: '' }));
  const [upload, ...others] = uploads as [Step, ...Step[]];
  return text.trim() === '' ? [upload, ...others] : [textStep(api, message), upload, ...others];
}

function textStep(api: BotApi, message: Outgoing): Step {
  return {
    carries: 'a text',
    async make(form, signal) {
      const { text, mode } = wordsOf(message.text, form.formatted);
      const options = { ...addressOf(form), ...answerTo(message), ...keyboardOf(message.buttons), ...mode };
      const sent = await api.sendMessage({ ...options, text, link_preview_options: { is_disabled: true } }, signal);
      return sent.message_id;
    },
  };
}

function fileStep(api: BotApi, file: OutgoingFile, message: Outgoing): Step {
  return {
    carries: nameOf(file),
    async make(form, signal) {
      const { text, mode } = wordsOf(message.text, form.formatted);
      const caption = text.trim() === '' ? {} : { caption: text, ...mode };
      const options = { ...addressOf(form), ...answerTo(message), ...keyboardOf(message.buttons), ...caption };
      return (await upload(api, form.asDocument ? 'document' : file.kind, file, options, signal)).message_id;
    },
  };
}

interface UploadOptions extends ReturnType<typeof addressOf> {
  readonly caption?: string;
}

function upload(
  api: BotApi,
  kind: OutgoingFile['kind'],
  file: OutgoingFile,
  options: UploadOptions,
  signal: CallSignal,
): Promise<{ message_id: number }> {
  const bytes = inputOf(file);
  switch (kind) {
    case 'image':
      return api.sendPhoto({ ...options, photo: bytes }, signal);
    case 'voice':
      return api.sendVoice({ ...options, voice: bytes }, signal);
    case 'audio':
      return api.sendAudio({ ...options, audio: bytes }, signal);
    case 'video':
      return api.sendVideo({ ...options, video: bytes }, signal);
    case 'sticker':
      return api.sendSticker({ ...options, sticker: bytes }, signal);
    case 'document':
      return api.sendDocument({ ...options, document: bytes }, signal);
  }
}

const ALBUM_KINDS = { image: 'photo', video: 'video', audio: 'audio', document: 'document' } as const;

/** Pictures and videos mix in an album, other kinds do not. */
function isAlbum(files: readonly OutgoingFile[]): boolean {
  const family = (kind: OutgoingFile['kind']) => (kind === 'image' ? 'video' : kind);
  const [first] = files;
  if (first === undefined || files.length < 2 || files.length > ALBUM || !(first.kind in ALBUM_KINDS)) return false;
  return files.every(({ kind }) => family(kind) === family(first.kind));
}

function albumStep(api: BotApi, files: readonly OutgoingFile[]): Step {
  return {
    carries: files.map(nameOf).join(', '),
    async make(form, signal) {
      const media = files.map((file) => {
        const type = form.asDocument ? 'document' : ALBUM_KINDS[file.kind as keyof typeof ALBUM_KINDS];
        return { type, media: inputOf(file) };
      });
      const sent = await api.sendMediaGroup({ ...addressOf(form), media: media as never }, signal);
      return sent.at(-1)?.message_id ?? 0;
    },
  };
}

function inputOf(file: OutgoingFile): InputFile {
  return new InputFile(file.bytes, nameOf(file));
}

/** Without its folder, which stays private, and without what would end the header it stands in. */
function nameOf({ name }: OutgoingFile): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/["\r\n\0]/g, '_') || 'file';
}

/** Where a call goes, as the Bot API names it. */
export function addressOf({ chat, thread }: Pick<Form, 'chat' | 'thread'>) {
  return { chat_id: chatIdOf(chat), ...(thread === undefined ? {} : { message_thread_id: idOf(thread) }) };
}

/** A number, or the public name of a channel. */
export function chatIdOf(chat: string): number | string {
  return /^-?\d+$/.test(chat) ? idOf(chat) : chat;
}

export function idOf(text: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id)) return id;
  throw new SendFailure(`${text.slice(0, 32)} is no id of Telegram`, null, 'unknown');
}

/** A text as the Bot API takes it. What shows nothing when it is formatted, as an empty quote, goes as it is. */
export function wordsOf(markdown: string, formatted: boolean) {
  const html = formatted ? htmlOf(markdown) : '';
  if (html.replace(/<[^<>]*>/g, '').trim() === '') return { text: markdown, mode: {} };
  return { text: html, mode: { parse_mode: 'HTML' as const } };
}

/** Nothing for what cannot be formatted: a reply that is durable must not fail in the same way at every try. */
function htmlOf(markdown: string): string {
  if (markdown.length > LONGEST_FORMATTED) return '';
  try {
    return renderHtml(markdown);
  } catch {
    return '';
  }
}

function answerTo({ replyTo }: Outgoing) {
  if (replyTo === undefined) return {};
  return { reply_parameters: { message_id: idOf(replyTo), allow_sending_without_reply: true } };
}

export function keyboardOf(buttons: Outgoing['buttons']) {
  if (buttons === undefined || buttons.length === 0) return {};
  const keyOf = ({ label, data }: Button) => {
    if (Buffer.byteLength(data) <= MAX_BUTTON_BYTES) return { text: label, callback_data: data };
    throw new SendFailure(
      `the data of the button ${label} has more than ${MAX_BUTTON_BYTES} bytes`,
      null,
      'bad_format',
    );
  };
  return { reply_markup: { inline_keyboard: buttons.map((row) => row.map(keyOf)) } };
}
