import { pause } from '../deadline.ts';
import { fieldsOf, listOf, textOf } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type OutgoingFile, type Place, SendFailure, type SentMessage } from '../platform.ts';
import {
  captionOf,
  choicePayloads,
  type Payload,
  parameterOf,
  type Template,
  templatePayload,
  textPayload,
} from './compose.ts';
import { PAIR_LIMIT, sendFailureOf } from './failures.ts';
import { type GraphApi, GraphError } from './graph-api.ts';
import type { Ledger } from './ledger.ts';
import { fileNameOf, takesCaption, uploadMedia } from './media.ts';
import { PairPace } from './pair-pace.ts';
import { MOST_KEY } from './parse.ts';

const CALL_MS = 30_000;
const MORE_TRIES = 3;
/** The gate of the whole number: limits that are not about one person. */
const EVERYBODY = '*';

interface SendingDeps {
  readonly api: GraphApi;
  /** What is sent to who may only be written to by template; null where nothing is. */
  readonly template: Template | null;
  readonly ledger: Ledger;
  /** Every call that concerns a chat is told of: null is a success. */
  readonly outcome: (failure: SendFailure | null) => void;
}

/** One of the messages that a message becomes. */
interface Step {
  /** What is missing without it, for people. */
  readonly carries: string;
  prepare(signal: AbortSignal): Promise<Payload>;
}

/** Calls that concern one chat. */
export class Sending {
  readonly #deps: SendingDeps;
  readonly #gate: FloodGate;
  readonly #pace: PairPace;

  constructor(deps: SendingDeps) {
    this.#deps = deps;
    this.#gate = new FloodGate(deps.api.runtime);
    this.#pace = new PairPace(deps.api.runtime);
  }

  /** Sends a message, which may become several; returns the id of the last. Throws `SendFailure`. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    if (this.#isTooLate(place, message)) return await this.#sendLate(place, message, signal);
    try {
      return await this.#sendAll(place, message, stepsOf(this.#deps.api, message), signal);
    } catch (thrown) {
      if (!(thrown instanceof SendFailure) || thrown.kind !== 'expired') throw thrown;
      return await this.#sendLate(place, message, signal, thrown);
    }
  }

  /** A sign at a message of a person; an empty one takes it away. */
  async react(place: Place, messageId: string, emoji: string, signal: AbortSignal): Promise<void> {
    const payload = { type: 'reaction', reaction: { message_id: messageId, emoji } };
    await this.#call(place, { ...addressOf(place), ...payload }, signal);
  }

  /** Shows that a message was read, and that it is being answered if `typing` says so. */
  async markRead(place: Place, messageId: string, typing: boolean, signal: AbortSignal): Promise<void> {
    // A sign of life is no reason to annoy a server that asked for patience.
    if (this.#gate.closedFor(EVERYBODY) > 0 || this.#gate.closedFor(place.chat) > 0) return;
    const indicator = typing ? { typing_indicator: { type: 'text' } } : {};
    await this.#post({ status: 'read', message_id: messageId, ...indicator }, signal);
  }

  #isTooLate({ chat }: Place, { reply }: Outgoing): boolean {
    const now = this.#deps.api.runtime.now();
    if (this.#deps.ledger.mayAnswer(chat, now)) return false;
    if (reply !== undefined) return reply.until !== null && reply.until <= now;
    // Nothing says that they have written. Without a template the server is asked: it may know better.
    return this.#deps.template !== null;
  }

  /** By template, as far as it holds it; what does not fit, or cannot be said so, waits until they write. */
  async #sendLate(
    place: Place,
    message: Outgoing,
    signal: AbortSignal,
    cause = new SendFailure(
      'they wrote more than 24 hours ago, and WhatsApp takes no answer any more',
      null,
      'expired',
    ),
  ): Promise<SentMessage> {
    const { template } = this.#deps;
    const isPlain = (message.files ?? []).length === 0 && (message.buttons ?? []).length === 0;
    if (template === null || !isPlain || message.text.trim() === '') throw cause;
    const parameter = parameterOf(message.text);
    const { reply: _reply, replyTo: _replyTo, key, ...rest } = message;
    const late = { ...rest, ...(key === undefined ? {} : { key: `${key}${BY_TEMPLATE}` }) };
    const step = { carries: 'a text', prepare: async () => templatePayload(template, parameter.text) };
    const sent = await this.#sendAll(place, late, [step], signal).catch(keepLate);
    if (parameter.whole) return sent;
    throw new SendFailure('the template had room for the beginning only; the whole waits for them', null, 'expired');
  }

  async #sendAll(place: Place, message: Outgoing, steps: readonly Step[], signal: AbortSignal): Promise<SentMessage> {
    const { ledger } = this.#deps;
    const work = async (): Promise<SentMessage> => {
      let last = '';
      for (const [index, step] of steps.entries()) {
        const own = { place, step, key: keyOf(message.key, index), replyTo: index === 0 ? message.replyTo : undefined };
        // What is there cannot be taken back, so a failure must not make the caller send all of it again.
        last = index === 0 ? await this.#make(own, signal) : ((await this.#retryStep(own, signal)) ?? last);
      }
      ledger.said(last, message.text);
      return { messageId: last };
    };
    return message.key === undefined ? await work() : await ledger.track(wholeKey(message.key), work);
  }

  /** Makes one message; what is known to have arrived is not made again. */
  async #make({ place, step, key, replyTo }: StepWork, signal: AbortSignal): Promise<string> {
    const arrived = key === undefined ? undefined : this.#deps.ledger.arrived(key);
    if (arrived !== undefined) return arrived;
    const payload = await this.#prepare(place, step, signal);
    const quote = replyTo === undefined ? {} : { context: { message_id: replyTo } };
    const callback = key === undefined || key.length > MOST_KEY ? {} : { biz_opaque_callback_data: key };
    return await this.#call(place, { ...addressOf(place), ...quote, ...payload, ...callback }, signal);
  }

  async #prepare(place: Place, step: Step, signal: AbortSignal): Promise<Payload> {
    this.#check(place.chat);
    try {
      return await step.prepare(signal);
    } catch (thrown) {
      const { message, retryAfterMs, kind } = this.#failureOf(place.chat, thrown);
      // Nothing was shown to anybody yet: a file that may have been uploaded is uploaded again.
      throw new SendFailure(message, retryAfterMs, kind === 'uncertain' ? 'transient' : kind);
    }
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #retryStep(work: StepWork, signal: AbortSignal): Promise<string | null> {
    const { runtime } = this.#deps.api;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#make(work, signal);
      } catch (thrown) {
        const { retryAfterMs, message } = this.#failureOf(work.place.chat, thrown);
        if (retryAfterMs === null || tries > MORE_TRIES || signal.aborted) {
          runtime.warn('a file was not sent', { error: message });
          break;
        }
        await pause(runtime, retryAfterMs, signal);
      }
    }
    const text = `(${work.step.carries} could not be sent)`;
    const notice = { carries: 'a notice', prepare: async () => textPayload(text) };
    return await this.#make({ ...work, step: notice, key: undefined }, signal).catch(() => null);
  }

  /** Sends what is shown to a person; returns its id. */
  async #call(place: Place, message: Payload, signal: AbortSignal): Promise<string> {
    this.#check(place.chat);
    this.#pace.take(place.chat);
    try {
      const { messages } = await this.#post({ recipient_type: 'individual', ...message }, signal);
      const id = textOf(fieldsOf(listOf(messages)[0])?.id, 256);
      if (!id) throw new SendFailure('the server took a message and gave it no id', 1000, 'uncertain');
      this.#pace.taken(place.chat);
      this.#deps.outcome(null);
      return id;
    } catch (thrown) {
      throw this.#failureOf(place.chat, thrown);
    }
  }

  async #post(message: Payload, signal: AbortSignal) {
    const { api } = this.#deps;
    const json = { messaging_product: 'whatsapp', ...message };
    return await api.call(`${api.phoneNumberId}/messages`, { method: 'POST', json }, CALL_MS, signal);
  }

  #check(chat: string): void {
    this.#gate.check(EVERYBODY);
    this.#gate.check(chat);
  }

  #failureOf(chat: string, thrown: unknown): SendFailure {
    if (thrown instanceof SendFailure) return thrown;
    const failure = sendFailureOf(thrown, this.#deps.api.redact);
    this.#deps.outcome(failure);
    if (!(thrown instanceof GraphError) || thrown.code !== PAIR_LIMIT) return this.#gate.note(EVERYBODY, failure);
    const wait = Math.max(failure.retryAfterMs ?? 0, this.#pace.refused(chat));
    return this.#gate.note(chat, new SendFailure(failure.message, wait, failure.kind));
  }
}

/** Why ever a template is refused for good, the words that it was to carry wait until they write. */
function keepLate(thrown: unknown): never {
  if (!(thrown instanceof SendFailure) || thrown.retryAfterMs !== null || thrown.kind === 'gone') throw thrown;
  throw new SendFailure(thrown.message, null, 'expired');
}

interface StepWork {
  readonly place: Place;
  readonly step: Step;
  /** Names this one message for good. */
  readonly key: string | undefined;
  readonly replyTo: string | undefined;
}

/** Every message that a message becomes has a key of its own. */
function keyOf(key: string | undefined, index: number): string | undefined {
  return key === undefined || index === 0 ? key : `${key}#${index + 1}`;
}

/** Behind the key of what goes by template: what becomes of it is told of by another process, perhaps. */
const BY_TEMPLATE = '#template';

/** The key of the whole message. */
export function wholeKey(key: string): string {
  return key.replace(/#(?:\d{1,3}|template)$/, '');
}

/** Whether what was sent with this key went by template. */
export function isByTemplate(key: string): boolean {
  return key.endsWith(BY_TEMPLATE);
}

/** Whose number is not told is named by what Meta gives instead of it. */
function addressOf({ chat }: Place): Payload {
  return /^\d+$/.test(chat) ? { to: chat } : { recipient: chat };
}

/** The messages that a message becomes, the first with what matters most. */
function stepsOf(api: GraphApi, message: Outgoing): readonly Step[] {
  const { text, files = [], buttons = [] } = message;
  const [file] = files;
  if (file === undefined) return wordSteps(message);
  const caption = buttons.length === 0 && files.length === 1 && takesCaption(file) ? captionOf(text) : null;
  if (caption !== null) return [fileStep(api, file, caption)];
  const uploads = files.map((each) => fileStep(api, each, ''));
  return text.trim() === '' && buttons.length === 0 ? uploads : [...wordSteps(message), ...uploads];
}

function wordSteps({ text, buttons = [] }: Outgoing): readonly Step[] {
  if (buttons.flat().length === 0) return [{ carries: 'a text', prepare: async () => textPayload(text) }];
  return choicePayloads(text, buttons).map((payload) => ({ carries: 'buttons', prepare: async () => payload }));
}

function fileStep(api: GraphApi, file: OutgoingFile, caption: string): Step {
  return { carries: fileNameOf(file), prepare: (signal) => uploadMedia(api, file, caption, signal) };
}
