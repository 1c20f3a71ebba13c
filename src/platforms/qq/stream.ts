import { type Fields, nameOf } from '../fields.ts';
import {
  type Outgoing,
  type Place,
  type ReplyStream,
  SendFailure,
  type SentMessage,
  type StreamOpening,
} from '../platform.ts';
import type { QqApi } from './api.ts';
import { sendFailureOf } from './failures.ts';
import { QqError } from './qq-error.ts';
import { renderMarkdown, stablePart } from './render.ts';
import { pathOf } from './scenes.ts';
import type { Sending } from './send.ts';
import type { StreamNote, StreamNotes } from './stream-notes.ts';

export interface StreamDeps {
  readonly api: QqApi;
  readonly sending: Sending;
  readonly notes: StreamNotes;
}

const [WRITING, DONE] = [1, 10];
/** What was sent does not begin with what people see. */
const NOT_ITS_BEGINNING = 40007;
/** More frames than any process sends: the next process goes on behind them. */
const FRAMES_OF_A_PROCESS = 1000;

/** What a stream answers, and the number that all of it carries. */
interface Answer {
  readonly messageId: string;
  readonly number: number;
}

export async function startQqStream(
  deps: StreamDeps,
  place: Place,
  { key, reply }: StreamOpening,
): Promise<ReplyStream> {
  if (reply === undefined) throw new SendFailure('only an answer can grow on QQ', null);
  const said = reply.data.msg_id;
  const messageId = typeof said === 'string' ? said : reply.messageId;
  const number = await deps.sending.numbers.numberOf(key);
  return new QqStream(deps, place, { messageId, number }, '');
}

/** One that a process before this one may have begun: what people see of it is not known. */
export function resumeQqStream(deps: StreamDeps, place: Place, handle: string): ReplyStream {
  return new QqStream(deps, place, answerOf(handle), null);
}

function answerOf(handle: string): Answer | null {
  const at = handle.lastIndexOf('/');
  const number = Number(handle.slice(at + 1));
  return at > 0 && Number.isSafeInteger(number) ? { messageId: handle.slice(0, at), number } : null;
}

/**
 * An answer that QQ shows growing. It can only grow: each text begins with what people see already. What does not, as the
 * answer behind what was said before a tool was used, comes below it.
 */
class QqStream implements ReplyStream {
  readonly handle: string;
  readonly #deps: StreamDeps;
  readonly #place: Place;
  readonly #answer: Answer | null;
  /** What people see; null where that is not known. */
  #shown: string | null;
  #next: number | null = null;

  constructor(deps: StreamDeps, place: Place, answer: Answer | null, shown: string | null) {
    this.#deps = deps;
    this.#place = place;
    this.#answer = answer;
    this.#shown = shown;
    this.handle = answer === null ? '' : `${answer.messageId}/${answer.number}`;
  }

  async append(text: string, signal: AbortSignal): Promise<void> {
    const words = renderMarkdown(stablePart(text));
    const content = this.#shown === null ? words : continued(this.#shown, words, false);
    if (content.trim() === '' || content === this.#shown) return;
    try {
      await this.#send(WRITING, 'replace', content, signal);
      this.#shown = content;
    } catch (thrown) {
      // Shorter than what a process before this one has shown, so far.
      if (this.#shown !== null || !isAnotherBeginning(thrown)) throw this.#failureOf(thrown);
    }
  }

  async finish({ text }: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    const note = await this.#deps.notes.get(this.handle);
    if (note?.isDone) return { messageId: this.handle };
    if (note === null && this.#shown !== '') throw new SendFailure('there is no such stream any more', null);
    // Kept before it is sent: an end whose answer is lost may have been taken.
    if (note !== null) await this.#note({ isEnding: true });
    try {
      await this.#end(renderMarkdown(text), signal);
    } catch (thrown) {
      const failure = this.#failureOf(thrown);
      // It has ended already, if it was to end before and nobody knows what became of that.
      const mayHaveEnded = note?.isEnding === true && failure.kind === 'unknown';
      if (note !== null && !mayHaveEnded) await this.#notEnded(note, failure, signal);
      if (!mayHaveEnded) throw failure;
    }
    await this.#note({ isDone: true });
    return { messageId: this.handle };
  }

  async #end(words: string, signal: AbortSignal): Promise<void> {
    const content = this.#shown === null ? words : continued(this.#shown, words, true);
    await this.#send(DONE, 'replace', content, signal).catch(async (thrown: unknown) => {
      if (this.#shown !== null || !isAnotherBeginning(thrown)) throw thrown;
      await this.#send(DONE, 'append', `\n\n${words}`, signal);
    });
  }

  async #notEnded({ isEnding }: StreamNote, { kind }: SendFailure, signal: AbortSignal): Promise<void> {
    // This end was not taken; one before it may have been.
    if (!isEnding && kind !== 'uncertain') await this.#note({ isEnding: false });
    // Nobody ends it later: the reply is sent as messages of its own.
    if (kind === 'too_long') await this.#send(DONE, 'append', '\n', signal).catch(() => undefined);
  }

  async #send(state: number, mode: 'replace' | 'append', content: string, signal: AbortSignal): Promise<void> {
    const { api, sending, notes } = this.#deps;
    if (this.#answer === null) throw new SendFailure('there is no such stream', null);
    const { messageId, number } = this.#answer;
    sending.gate.check(this.#place.chat);
    const note = await notes.get(this.handle);
    const index = this.#next ?? (note === null ? 0 : nextIndex(note, notes.now()));
    // Also one that fails counts to the server.
    this.#next = index + 1;
    const json: Fields = {
      ...{ input_mode: mode, input_state: state, index, content_type: 'markdown', content_raw: content },
      ...{ msg_id: messageId, msg_seq: number },
      ...(note === null ? {} : { stream_msg_id: note.id }),
    };
    const path = `${pathOf(this.#place)}/stream_messages`;
    const answer = await api.call({ method: 'POST', path, json }, signal);
    sending.numbers.used(messageId, number);
    sending.taken(this.handle, answer);
    if (note !== null) return;
    const id = nameOf(answer.id);
    if (id === null) throw new SendFailure('the server does not name the stream', null);
    await this.#note({ id });
  }

  async #note(change: Partial<StreamNote>): Promise<void> {
    const { notes } = this.#deps;
    const before = (await notes.get(this.handle)) ?? { id: '', since: notes.now(), isEnding: false, isDone: false };
    await notes.set(this.handle, { ...before, ...change });
  }

  #failureOf(thrown: unknown): SendFailure {
    const { api, sending } = this.#deps;
    return sending.gate.note(this.#place.chat, sendFailureOf(thrown, api.redact));
  }
}

function isAnotherBeginning(thrown: unknown): boolean {
  return thrown instanceof QqError && thrown.code === NOT_ITS_BEGINNING;
}

/** Behind all that a process before this one has sent: it grows with time, and by more than there are frames. */
function nextIndex({ since }: StreamNote, now: number): number {
  return FRAMES_OF_A_PROCESS + Math.max(0, Math.floor((now - since) / 1000));
}

/**
 * What to show so that it begins with what is shown and ends with the words: behind the lines above them if what is shown
 * ends with their beginning, else below it all. Of words that still grow, those that are shown already
 * change nothing.
 */
export function continued(shown: string, words: string, isWhole: boolean): string {
  for (let at = 0; at < shown.length; at = lineBehind(shown, at)) {
    const rest = shown.slice(at);
    if (words.startsWith(rest)) return shown.slice(0, at) + words;
    if (!isWhole && rest.startsWith(words)) return shown;
  }
  return shown === '' ? words : `${shown}\n\n${words}`;
}

function lineBehind(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
}
