import { fieldsOf } from '../fields.ts';
import {
  type Outgoing,
  type Place,
  type ReplyStream,
  SendFailure,
  type SentMessage,
  type StreamOpening,
} from '../platform.ts';
import { idOf, timeOf } from './places.ts';
import { renderBeginning, renderMarkdown } from './render.ts';
import { buttonBlocks, type Sending } from './send.ts';

/** Reasons for which nothing can be added to a stream any more, though its message is there. */
const OVER = ['message_not_in_streaming_state', 'stopped_by_user'];
const MOST_REMEMBERED = 500;

/** What a stream shows, as far as this process knows. */
interface Shown {
  /** What was added for the text that grows now. */
  text: string;
  /** More was added than that text, or nobody knows what arrived: only the whole reply mends it. */
  isOther: boolean;
  /** Slack or the person has ended it. */
  isOver: boolean;
}

/** Replies that Slack shows growing. */
export class Streams {
  readonly #sending: Sending;
  readonly #shown = new Map<string, Shown>();

  constructor(sending: Sending) {
    this.#sending = sending;
  }

  /** Begins one in a thread. Throws `SendFailure`. */
  async start({ type, chat, thread }: Place, { reply }: StreamOpening, signal: AbortSignal): Promise<ReplyStream> {
    if (thread === undefined) throw new SendFailure('Slack streams in threads only', null);
    const { user, team } = reply?.data ?? {};
    if (type !== 'dm' && (typeof user !== 'string' || typeof team !== 'string')) {
      throw new SendFailure('Slack streams in a channel only to a known person', null);
    }
    const recipient = type === 'dm' ? {} : { recipient_user_id: user, recipient_team_id: team };
    const started = await this.#sending.call(
      'chat.startStream',
      { channel: chat, thread_ts: thread, ...recipient },
      signal,
    );
    const ts = timeOf(started.ts);
    if (ts === null) throw new SendFailure('Slack began a stream without saying which', null);
    this.#remember(nameOf(chat, ts), { text: '', isOther: false, isOver: false });
    return this.#stream(chat, ts);
  }

  /** One that may have been begun by a process before this one. */
  resume(handle: string): ReplyStream {
    const { channel, ts } = parseHandle(handle);
    return this.#stream(channel, ts);
  }

  #stream(channel: string, ts: string): ReplyStream {
    return {
      handle: JSON.stringify({ channel, ts }),
      append: (text, signal) => this.#append(channel, ts, text, signal),
      finish: (message, signal) => this.#finish(channel, ts, message, signal),
    };
  }

  /**
   * Slack can only add. A text that does not go on from the last one begins a paragraph; in a stream of another process
   * nobody knows what is there, so it stays until its end.
   */
  async #append(channel: string, ts: string, text: string, signal: AbortSignal): Promise<void> {
    const shown = this.#shown.get(nameOf(channel, ts));
    if (shown === undefined || shown.isOver) return;
    const wanted = renderBeginning(text);
    const goesOn = wanted.startsWith(shown.text);
    const added = goesOn ? wanted.slice(shown.text.length) : `\n\n${wanted}`;
    if (added.trim() === '') return;
    const before = { ...shown };
    // Until Slack has answered nobody knows whether it is there.
    Object.assign(shown, { text: wanted, isOther: true });
    const args = { channel, ts, markdown_text: added };
    const answer = await this.#sending
      .callUnless('chat.appendStream', args, signal, ...OVER)
      .catch((thrown: unknown) => {
        const isKnown = thrown instanceof SendFailure && thrown.kind !== 'uncertain' && thrown.kind !== 'unknown';
        if (isKnown) Object.assign(shown, before);
        throw thrown;
      });
    shown.isOver = answer === null;
    shown.isOther = before.isOther || !goesOn || shown.isOver;
  }

  /** With the rest of the reply where that makes it whole, else the whole reply takes the place of what was shown. */
  async #finish(channel: string, ts: string, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    if (idOf(channel) === null || timeOf(ts) === null) throw new SendFailure('there is no such stream', null);
    const shown = this.#shown.get(nameOf(channel, ts));
    const whole = renderMarkdown(message.text);
    const isPart = shown !== undefined && !shown.isOther && !shown.isOver && whole.startsWith(shown.text);
    const rest = isPart ? whole.slice(shown.text.length) : '';
    const buttons = isPart && message.buttons !== undefined ? { blocks: buttonBlocks(message.buttons) } : {};
    const words = rest === '' ? {} : { markdown_text: rest };
    const stopped = await this.#sending.callUnless(
      'chat.stopStream',
      { channel, ts, ...words, ...buttons },
      signal,
      ...OVER,
    );
    if (stopped === null || !isPart) await this.#sending.edit({ type: 'dm', chat: channel }, ts, message, signal);
    this.#shown.delete(nameOf(channel, ts));
    return { messageId: ts };
  }

  #remember(name: string, shown: Shown): void {
    this.#shown.set(name, shown);
    if (this.#shown.size > MOST_REMEMBERED)
      for (const oldest of this.#shown.keys()) return void this.#shown.delete(oldest);
  }
}

function nameOf(channel: string, ts: string): string {
  return `${channel}:${ts}`;
}

function parseHandle(handle: string): { channel: string; ts: string } {
  try {
    const fields = fieldsOf(JSON.parse(handle));
    return { channel: idOf(fields?.channel) ?? '', ts: timeOf(fields?.ts) ?? '' };
  } catch {
    return { channel: '', ts: '' };
  }
}
