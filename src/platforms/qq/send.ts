import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, nameOf } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type OutgoingFile, type Place, type PlatformRuntime, SendFailure } from '../platform.ts';
import { Recent } from '../recent.ts';
import type { QqApi } from './api.ts';
import { awaitsAudit, isDuplicate, sendFailureOf } from './failures.ts';
import { FIRST_FORM, type Form, mendedForm, textBody } from './message-body.ts';
import { Numbers } from './numbers.ts';
import { QqError } from './qq-error.ts';
import { pathOf, sceneOf } from './scenes.ts';
import { uploadFile } from './upload.ts';

const REMEMBERED = 2000;
const MORE_TRIES = 3;

/** What a message answers, which is what lets it through: a message or an event; nothing for what is said unasked. */
interface Occasion {
  readonly messageId?: string;
  readonly eventId?: string;
}

/** One message of those that a message becomes. */
interface Step {
  /** What is missing without it, for people. */
  readonly carries: string;
  readonly key: string;
  /** Called for each attempt: what the server refuses is changed. */
  make(form: Form, signal: AbortSignal): Promise<Fields>;
}

/** A message of ours that waits until somebody has looked at it. */
interface Audited {
  readonly place: Place;
  readonly key: string;
}

/** Messages to people, groups and channels, each numbered so that a repetition is known. */
export class Sending {
  readonly gate: FloodGate;
  readonly numbers: Numbers;
  readonly #api: QqApi;
  readonly #runtime: PlatformRuntime;
  /** What we call our messages, by what QQ calls them when it gives them an id. */
  readonly #names = new Recent<string>(REMEMBERED);
  readonly #audits = new Recent<Audited>(REMEMBERED);

  constructor(api: QqApi) {
    this.#api = api;
    this.#runtime = api.options.runtime;
    this.gate = new FloodGate(this.#runtime);
    this.numbers = new Numbers(this.#runtime);
  }

  /** Sends a message, which may become several; returns the name of the last. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { reply, key = this.#anyKey() } = message;
    const said = reply?.data.msg_id;
    const occasion = reply === undefined ? {} : { messageId: typeof said === 'string' ? said : reply.messageId };
    const [first, ...more] = this.#stepsOf(place, { ...message, key });
    let last = await this.#post(place, occasion, first, signal);
    // What is there cannot be taken back, so a failure must not make the caller send all of it again.
    for (const step of more) last = (await this.#retryStep(place, occasion, step, signal)) ?? last;
    return last;
  }

  /** Says something to who pressed a button, which allows to answer that. */
  async answerPress(place: Place, text: string, eventId: string | null, key: string, signal: AbortSignal) {
    const step = this.#textStep(place, { text, key });
    await this.#post(place, eventId === null ? {} : { eventId }, step, signal);
  }

  /** What we call a message of ours; null for one that is not known to be ours. */
  ownName(id: string): string | null {
    return this.#names.get(id) ?? null;
  }

  /** The message that waited for an audit; null for one that is not known. */
  audited(audit: string): Audited | null {
    return this.#audits.get(audit) ?? null;
  }

  /** QQ has taken something of ours: what it is called from now on. */
  taken(name: string, answer: Fields): string {
    const id = nameOf(answer.id);
    const reference = nameOf(fieldsOf(answer.ext_info)?.ref_idx);
    const known = name === '' ? (id ?? '') : name;
    if (id !== null) this.#names.set(id, known);
    if (reference !== null) this.#names.set(reference, known);
    return known;
  }

  async #post(place: Place, occasion: Occasion, step: Step, signal: AbortSignal): Promise<string> {
    const { messageId } = occasion;
    const isNumbered = isNumberedAt(place);
    const isAnswer = messageId !== undefined || occasion.eventId !== undefined;
    for (let form = FIRST_FORM; ; ) {
      this.gate.check(place.chat);
      const number = await this.numbers.numberOf(step.key);
      if (isNumbered && messageId !== undefined) this.#checkAnswers(messageId, number);
      // QQ gives no id when it refuses a repetition: an answer is called by what it carries.
      const name = isNumbered && messageId !== undefined ? `${messageId}/${number}` : '';
      try {
        const json = { ...(await step.make(form, signal)), ...contextOf(place, occasion, number) };
        const answer = await this.#api.call({ method: 'POST', path: `${pathOf(place)}/messages`, json }, signal);
        if (messageId !== undefined) this.numbers.used(messageId, number);
        return this.taken(name, answer);
      } catch (thrown) {
        const isTaken = (isDuplicate(thrown) && isNumbered && isAnswer) || awaitsAudit(thrown);
        const failure = isTaken ? null : sendFailureOf(thrown, this.#api.redact);
        const mayBeTaken = failure === null || failure.kind === 'uncertain';
        if (messageId !== undefined && mayBeTaken) this.numbers.used(messageId, number);
        if (failure === null) return this.#remembered(place, step, name, thrown);
        if (thrown instanceof QqError && thrown.code !== 0) await this.numbers.refused(step.key);
        const mended = mendedForm(form, thrown, failure);
        if (mended === null) throw this.gate.note(place.chat, failure);
        form = mended;
      }
    }
  }

  #remembered(place: Place, { key }: Step, name: string, thrown: unknown): string {
    const { body } = thrown as QqError;
    const audit = nameOf(fieldsOf(fieldsOf(body.data)?.message_audit)?.audit_id);
    if (audit === null) return name;
    this.#audits.set(audit, { place, key });
    return name === '' ? audit : name;
  }

  #checkAnswers(messageId: string, number: number): void {
    if (this.numbers.isUsedUp(messageId, number)) {
      throw new SendFailure('QQ takes five answers to a message, and this one has them', null, 'expired');
    }
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #retryStep(place: Place, occasion: Occasion, step: Step, signal: AbortSignal): Promise<string | null> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#post(place, occasion, step, signal);
      } catch (thrown) {
        const { retryAfterMs, message } = sendFailureOf(thrown, this.#api.redact);
        if (retryAfterMs === null || tries > MORE_TRIES || signal.aborted) {
          this.#runtime.warn('a file was not sent', { error: message });
          break;
        }
        await pause(this.#runtime, retryAfterMs, signal);
      }
    }
    const notice = this.#textStep(place, { text: `(${step.carries} could not be sent)`, key: `${step.key}:missing` });
    return await this.#post(place, occasion, notice, signal).catch(() => null);
  }

  #stepsOf(place: Place, message: Outgoing & { readonly key: string }): readonly [Step, ...Step[]] {
    const { key, files = [], text } = message;
    if (files.length === 0) return [this.#textStep(place, message)];
    if (!isNumberedAt(place)) {
      const missing = `(${files.map(({ name }) => name).join(', ')} could not be sent: bots send no files in guilds)`;
      return [this.#textStep(place, { ...message, text: text.trim() === '' ? missing : `${text}\n\n${missing}` })];
    }
    const uploads = files.map((file, index) => this.#fileStep(place, file, `${key}:file${index + 1}`));
    const [upload, ...others] = uploads as [Step, ...Step[]];
    return text.trim() === '' ? [upload, ...others] : [this.#textStep(place, message), upload, ...others];
  }

  #textStep(place: Place, message: Outgoing & { readonly key: string }): Step {
    return { carries: 'a text', key: message.key, make: async (form) => textBody(place, message, form) };
  }

  #fileStep(place: Place, file: OutgoingFile, key: string): Step {
    return {
      carries: file.name,
      key,
      make: async (form, signal) => {
        const info = await uploadFile(this.#api, place, file, form.asDocument, signal);
        return { msg_type: 7, content: ' ', media: { file_info: info } };
      },
    };
  }

  /** Nobody tells what names it, so nobody repeats it. */
  #anyKey(): string {
    return `any ${this.#runtime.random()} ${this.#runtime.now()}`;
  }
}

function contextOf(place: Place, { messageId, eventId }: Occasion, number: number): Fields {
  return {
    ...(messageId === undefined ? {} : { msg_id: messageId }),
    ...(eventId === undefined ? {} : { event_id: eventId }),
    ...(isNumberedAt(place) ? { msg_seq: number } : {}),
  };
}

/** People and groups have the newer interface; that of guilds knows neither numbers nor files. */
function isNumberedAt(place: Place): boolean {
  const scene = sceneOf(place);
  return scene === 'person' || scene === 'group';
}
