import { createHash } from 'node:crypto';
import { pause } from '../deadline.ts';
import { type Fields, listOf, textOf } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type Place, type ReplyContext, SendFailure } from '../platform.ts';
import { isOutsider } from './abilities.ts';
import type { DingtalkApi } from './api.ts';
import type { Cards } from './cards.ts';
import { Refusal, sendFailureOf } from './failures.ts';
import { type ApiMessage, baseName, uploadFile } from './files.ts';
import { renderMessage, titleOf } from './render.ts';

const MORE_TRIES = 3;
/** An answer that is on its way when its address runs out would be lost. */
const MARGIN_MS = 30_000;

/** One of the messages that a message becomes. */
interface Step {
  /** What is missing without it, for people. */
  readonly carries: string;
  /** Returns the id of what is shown then. Throws `SendFailure`. */
  make(signal: AbortSignal): Promise<string>;
}

/** Sends messages: answers to the address that a message brought, as long as it counts, and everything else by the API. */
export class Sending {
  readonly gate: FloodGate;
  readonly #api: DingtalkApi;
  readonly #cards: Cards | null;

  constructor(api: DingtalkApi, cards: Cards | null) {
    this.#api = api;
    this.#cards = cards;
    this.gate = new FloodGate(api.app.runtime);
  }

  /** Sends a message, which may become several; returns the id of the last. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const [first, ...more] = this.#stepsOf(place, message);
    let last = await first.make(signal);
    // What is there cannot be taken back, so a failure must not make the caller send all of it again.
    for (const step of more) last = (await this.#retryStep(place, message, step, signal)) ?? last;
    return last;
  }

  /** Makes a call that concerns a chat, unless the server asked for patience with it. Throws `SendFailure`. */
  async call<T>({ chat }: Pick<Place, 'chat'>, call: () => Promise<T>): Promise<T> {
    this.gate.check(chat);
    try {
      return await call();
    } catch (thrown) {
      throw this.gate.note(chat, sendFailureOf(thrown, this.#api.redact));
    }
  }

  #stepsOf(place: Place, message: Outgoing): readonly [Step, ...Step[]] {
    const { text, files = [] } = message;
    const uploads = files.map((file): Step => {
      const send = (signal: AbortSignal) =>
        this.call(place, async () => this.#sendByApi(place, await uploadFile(this.#api, file, signal), signal));
      return { carries: baseName(file), make: send };
    });
    const [upload, ...others] = uploads;
    if (upload !== undefined && text.trim() === '') return [upload, ...others];
    return [{ carries: 'a text', make: (signal) => this.#sendText(place, message, signal) }, ...uploads];
  }

  async #sendText(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    const asked = await this.#sendCard(place, message, signal);
    if (asked !== null) return asked;
    const { text, key, reply } = message;
    const words = { title: titleOf(text), text: renderMessage(text) };
    const webhook = this.#webhookOf(reply);
    if (webhook === null) {
      const markdown = { msgKey: 'sampleMarkdown', msgParam: words };
      return await this.call(place, () => this.#sendByApi(place, markdown, signal));
    }
    return await this.call(place, async () => {
      try {
        await this.#api.ask(webhook, { method: 'POST', json: { msgtype: 'markdown', markdown: words } }, signal);
        return `answer-${digest(place.chat, key ?? String(this.#api.app.runtime.random()))}`;
      } catch (thrown) {
        if (!this.#isPastWebhook(thrown) || isOutsider(place)) throw thrown;
        return await this.#sendByApi(place, { msgKey: 'sampleMarkdown', msgParam: words }, signal);
      }
    });
  }

  /** A question with buttons; null where there is no card for it: then it is asked in words. */
  async #sendCard(place: Place, { text, key, buttons }: Outgoing, signal: AbortSignal): Promise<string | null> {
    const cards = this.#cards;
    const all = buttons?.flat() ?? [];
    if (cards === null || all.length === 0 || isOutsider(place)) return null;
    const id = cards.idOf(place, key ?? String(this.#api.app.runtime.random()));
    try {
      await this.call(place, () => cards.begin(place, id, all, signal));
      await this.call(place, () => cards.write(id, text, true, signal));
      return id;
    } catch (thrown) {
      if (!(thrown instanceof SendFailure) || thrown.retryAfterMs !== null || thrown.kind === 'gone') throw thrown;
      this.#api.app.runtime.warn('a question was sent without its buttons', { error: thrown.message });
      return null;
    }
  }

  /** Where the answer may go for now; null when that is over. */
  #webhookOf(reply: ReplyContext | undefined): string | null {
    const address = textOf(reply?.data.webhook, 2048);
    if (reply === undefined || !address) return null;
    if (reply.until !== null && reply.until - MARGIN_MS <= this.#api.app.runtime.now()) return null;
    return this.#api.app.addresses.webhook(address);
  }

  /** The address takes no answer any more, for whatever reason: the API may. */
  #isPastWebhook(thrown: unknown): boolean {
    if (!(thrown instanceof Refusal) || thrown.status >= 500) return false;
    const { kind } = sendFailureOf(thrown, this.#api.redact);
    return kind !== 'rate_limited' && kind !== 'too_long' && kind !== 'transient';
  }

  async #sendByApi(place: Place, { msgKey, msgParam }: ApiMessage, signal: AbortSignal): Promise<string> {
    const { type, chat } = place;
    if (isOutsider(place)) throw notReachable();
    const { robotCode } = this.#api.app;
    const message = { robotCode, msgKey, msgParam: JSON.stringify(msgParam) };
    if (type !== 'dm') {
      const json = { ...message, openConversationId: chat };
      return sentId(await this.#api.call({ path: '/v1.0/robot/groupMessages/send', json }, signal));
    }
    const json = { ...message, userIds: [chat] };
    const answer = await this.#api.call({ path: '/v1.0/robot/oToMessages/batchSend', json }, signal);
    checkTaken(answer, chat);
    return sentId(answer);
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #retryStep(place: Place, message: Outgoing, step: Step, signal: AbortSignal): Promise<string | null> {
    const { runtime } = this.#api.app;
    for (let tries = 1; ; tries += 1) {
      try {
        return await step.make(signal);
      } catch (thrown) {
        const { retryAfterMs, message: error, kind } = sendFailureOf(thrown, this.#api.redact);
        // One that may have arrived is not sent twice.
        if (kind === 'uncertain') return await this.#tell(place, message, `(${step.carries} may be missing)`, signal);
        if (retryAfterMs === null || tries > MORE_TRIES || signal.aborted) {
          runtime.warn('a file was not sent', { error });
          return await this.#tell(place, message, `(${step.carries} could not be sent)`, signal);
        }
        await pause(runtime, retryAfterMs, signal);
      }
    }
  }

  async #tell(place: Place, { reply }: Outgoing, text: string, signal: AbortSignal): Promise<string | null> {
    const notice = { text, ...(reply === undefined ? {} : { reply }) };
    return await this.#sendText(place, notice, signal).catch(() => null);
  }
}

/** People of other organisations can be answered, by the address that their messages bring, and not be written to. */
function notReachable(): SendFailure {
  const why = 'this person has no staff id: DingTalk takes answers to them only for a while after they wrote';
  return new SendFailure(why, null, 'expired');
}

function checkTaken(answer: Fields, staff: string): void {
  if (listOf(answer.flowControlledStaffIdList).includes(staff)) {
    throw new SendFailure('this person gets too many messages', 10_000, 'rate_limited');
  }
  if (listOf(answer.invalidStaffIdList).includes(staff)) {
    throw new SendFailure('nobody in the organisation has this staff id', null, 'gone');
  }
}

function sentId(answer: Fields): string {
  return textOf(answer.processQueryKey, 512) || 'sent';
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}
