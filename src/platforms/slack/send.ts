import { pause } from '../deadline.ts';
import type { Fields } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Button, type Outgoing, type Place, SendFailure } from '../platform.ts';
import { postTo } from './answers.ts';
import { isRefusal, sendFailureOf } from './failures.ts';
import { timeOf } from './places.ts';
import { renderMarkdown } from './render.ts';
import type { SlackBot } from './slack-client.ts';
import { escapeSigns } from './text.ts';
import { baseName, uploadFiles } from './upload.ts';

/** Slack's own limits. */
const MOST_LABEL = 75;
const MOST_BUTTON_BYTES = 2000;
const MOST_NOTICE = 3000;
const MOST_PLAIN = 40_000;
const MORE_TRIES = 3;

/** Carries the key of a message, so that it is found again. */
export const METADATA_TYPE = 'moirai_message';

/** Refusals of what a text is, not of who sends it or where. */
const UNREADABLE = ['invalid_blocks', 'invalid_blocks_format', 'msg_blocks_too_long', 'msg_too_long', 'no_text'];
const NOT_THERE = ['not_in_channel', 'channel_not_found'];
const NO_THREAD = ['thread_not_found', 'invalid_thread_ts', 'cannot_reply_to_message'];

/** How a message is sent; what the server refuses is changed. */
interface Form {
  readonly thread: string | undefined;
  /** False after Slack could not read our Markdown. */
  readonly isFormatted: boolean;
}

/** Calls that concern one channel. */
export class Sending {
  readonly #bot: SlackBot;
  readonly gate: FloodGate;

  constructor(bot: SlackBot) {
    this.#bot = bot;
    this.gate = new FloodGate(bot.runtime);
  }

  /** Calls a method. Throws `SendFailure`. */
  async call(method: string, args: Fields, signal: AbortSignal, ms?: number): Promise<Fields> {
    const gate = gateOf(method, args);
    this.gate.check(gate);
    try {
      return await this.#bot.call(method, args, signal, ms);
    } catch (thrown) {
      if (thrown === signal.reason) throw thrown;
      throw this.gate.note(gate, sendFailureOf(thrown, this.#bot.redact));
    }
  }

  /** The same for what counts a refusal for one of these reasons as done; null then. */
  async callUnless(method: string, args: Fields, signal: AbortSignal, ...reasons: string[]): Promise<Fields | null> {
    return await this.#tolerant(method, args, signal, (thrown) => isRefusal(thrown, ...reasons));
  }

  /** Sends a message, which may become several; returns the id of the first, which is the one that can be changed. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const { text, files = [] } = message;
    const isFilesOnly = text.trim() === '' && files.length > 0;
    if (isFilesOnly) return await uploadFiles(this, this.#bot, place, files, signal);
    const sent = await this.#post(place, message, signal);
    // The words are there and cannot be taken back: a failure must not make the caller send them again.
    if (files.length > 0) await this.#upload(place, files, signal);
    return sent;
  }

  async edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    const target = { channel: place.chat, ts: messageId };
    const content = contentOf(message);
    const refused = await this.#tolerant('chat.update', { ...target, ...content }, signal, isUnreadable);
    if (refused === null) await this.call('chat.update', { ...target, ...plainOf(message) }, signal);
  }

  async #post(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const { key, reply } = message;
    const metadata = key === undefined ? {} : { metadata: { event_type: METADATA_TYPE, event_payload: { key } } };
    const target = { channel: place.chat, ...metadata, unfurl_links: false, unfurl_media: false };
    const answerTo = this.#answerAddress(reply);
    let form: Form | null = { thread: place.thread, isFormatted: true };
    while (form !== null) {
      const { thread, isFormatted }: Form = form;
      const content = isFormatted ? contentOf(message) : plainOf(message);
      const args = { ...target, ...(thread === undefined ? {} : { thread_ts: thread }), ...content };
      let next: Form | null = null;
      const sent = await this.#tolerant('chat.postMessage', args, signal, (thrown) => {
        next = mend({ thread, isFormatted }, thrown);
        return next !== null || (answerTo !== null && isRefusal(thrown, ...NOT_THERE));
      });
      if (sent !== null) return timeOf(sent.ts) ?? '';
      form = next;
    }
    return await this.#answer(answerTo as URL, message, signal);
  }

  /** Where the app is no member it can still answer who gave a command. */
  async #answer(url: URL, message: Outgoing, signal: AbortSignal): Promise<string> {
    try {
      await postTo(url, { response_type: 'ephemeral', replace_original: false, ...contentOf(message) }, signal);
      return '';
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#bot.redact);
    }
  }

  #answerAddress(reply: Outgoing['reply']): URL | null {
    if (reply === undefined || (reply.until !== null && reply.until <= this.#bot.runtime.now())) return null;
    return this.#bot.addressOf(reply.data.answerTo);
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #upload(place: Place, files: NonNullable<Outgoing['files']>, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#bot;
    for (let tries = 1; ; tries += 1) {
      try {
        await uploadFiles(this, this.#bot, place, files, signal);
        return;
      } catch (thrown) {
        const { retryAfterMs, kind, message } = sendFailureOf(thrown, this.#bot.redact);
        const isHopeless = retryAfterMs === null || kind === 'uncertain' || tries > MORE_TRIES || signal.aborted;
        if (!isHopeless) {
          await pause(runtime, retryAfterMs, signal);
          continue;
        }
        runtime.warn('a file was not sent', { error: message });
        const names = files.map(baseName).join(', ');
        await this.#post(place, { text: `(${names} could not be sent)` }, signal).catch(() => null);
        return;
      }
    }
  }

  async #tolerant(
    method: string,
    args: Fields,
    signal: AbortSignal,
    isTolerated: (thrown: unknown) => boolean,
  ): Promise<Fields | null> {
    const gate = gateOf(method, args);
    this.gate.check(gate);
    try {
      return await this.#bot.call(method, args, signal);
    } catch (thrown) {
      if (thrown === signal.reason) throw thrown;
      if (isTolerated(thrown)) return null;
      throw this.gate.note(gate, sendFailureOf(thrown, this.#bot.redact));
    }
  }
}

/** Slack counts messages for each channel, and every other method for the whole workspace. */
function gateOf(method: string, { channel }: Fields): string {
  return method === 'chat.postMessage' ? `${method} ${String(channel)}` : method;
}

/** What Slack refused is changed, each thing once; null where nothing can be. */
function mend({ thread, isFormatted }: Form, thrown: unknown): Form | null {
  if (isFormatted && isUnreadable(thrown)) return { thread, isFormatted: false };
  const isThreadGone = thread !== undefined && isRefusal(thrown, ...NO_THREAD);
  return isThreadGone ? { thread: undefined, isFormatted } : null;
}

function isUnreadable(thrown: unknown): boolean {
  return isRefusal(thrown, ...UNREADABLE);
}

/**
 * A message as Slack shows it: Markdown in a block of its own, which Slack reads as models write it and shows without a
 * note that it was changed, and the buttons below. `text` is for notifications only.
 */
export function contentOf({ text, buttons = [] }: Outgoing): Fields {
  const markdown = { type: 'markdown', text: renderMarkdown(text) };
  return { text: escapeSigns(text.slice(0, MOST_NOTICE).toWellFormed()), blocks: [markdown, ...buttonBlocks(buttons)] };
}

/** The same where Slack cannot read it: the Markdown as it is. */
function plainOf({ text, buttons = [] }: Outgoing): Fields {
  const escaped = escapeSigns(text).slice(0, MOST_PLAIN).toWellFormed();
  if (buttons.length === 0) return { text: escaped, blocks: [] };
  const section = { type: 'section', text: { type: 'plain_text', text: text.slice(0, MOST_NOTICE).toWellFormed() } };
  return { text: escaped, blocks: [section, ...buttonBlocks(buttons)] };
}

export function buttonBlocks(rows: readonly (readonly Button[])[]): readonly object[] {
  return rows.map((row, index) => ({
    type: 'actions',
    elements: row.map(({ label, data }, column) => {
      if (Buffer.byteLength(data) > MOST_BUTTON_BYTES) {
        const most = `more than ${MOST_BUTTON_BYTES} bytes`;
        throw new SendFailure(`the data of the button ${label} has ${most}`, null, 'bad_format');
      }
      const text = { type: 'plain_text', text: label.slice(0, MOST_LABEL).toWellFormed(), emoji: true };
      return { type: 'button', action_id: `moirai:${index}:${column}`, text, value: data };
    }),
  }));
}
