import { ChatQueues } from '../chat-queues.ts';
import { pause, withDeadline } from '../deadline.ts';
import type { Inbox } from '../platform.ts';
import type { QqApi } from './api.ts';
import { sendFailureOf } from './failures.ts';
import type { Parsed } from './parse.ts';
import type { Sending } from './send.ts';

const ANSWER_MS = 10_000;
const GRACE_MS = 1000;
const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 60_000;

/** Brings what people say to the inbox: one at a time per chat, in order. */
export class Reception {
  readonly #api: QqApi;
  readonly #sending: Sending;
  readonly #inbox: Inbox;
  readonly #queues = new ChatQueues();
  readonly #answers = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(api: QqApi, sending: Sending, inbox: Inbox) {
    this.#api = api;
    this.#sending = sending;
    this.#inbox = inbox;
  }

  /** Resolves when the inbox has it; rejects when it has to be brought again. */
  async take(parsed: Parsed): Promise<void> {
    this.#acknowledge(parsed);
    await this.#queues.run(laneOf(parsed), () => this.#hand(parsed));
  }

  /**
   * Tries until the inbox has it, or the signal ends it: nothing that came over the socket comes again as long as the
   * connection stands. Resolves with whether the inbox has it. What the chat said later waits for it.
   */
  async takeSurely(parsed: Parsed, signal: AbortSignal): Promise<boolean> {
    this.#acknowledge(parsed);
    return await this.#queues.run(laneOf(parsed), async () => {
      for (let failures = 0; !signal.aborted; failures += 1) {
        try {
          await this.#hand(parsed);
          return true;
        } catch {
          // Logged where it was not taken.
          const wait = Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_CAP_MS);
          await pause(this.#api.options.runtime, wait, signal);
        }
      }
      return false;
    });
  }

  /** Lets the inbox finish what it has. */
  async settle(): Promise<void> {
    await this.#queues.settle();
    const enough = this.#api.options.runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#answers);
    enough();
  }

  async #hand(parsed: Parsed): Promise<void> {
    try {
      await this.#give(parsed);
    } catch (thrown) {
      this.#api.options.runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
      throw thrown;
    }
  }

  async #give(parsed: Parsed): Promise<void> {
    switch (parsed.kind) {
      case 'message':
        return await this.#inbox.receive(parsed.message);
      case 'event':
        return await this.#inbox.happened(parsed.event);
      case 'audit':
        return await this.#audited(parsed.audit, parsed.isPassed);
      case 'press':
        return await this.#pressed(parsed);
    }
  }

  /** Somebody looked at a message of ours and does not let it be shown: it has not arrived after all. */
  async #audited(audit: string, isPassed: boolean): Promise<void> {
    const message = isPassed ? null : this.#sending.audited(audit);
    if (message === null) return;
    const { place, key } = message;
    const reason = 'QQ looked at the message and does not show it';
    await this.#inbox.happened({ kind: 'message_failed', place, key, reason, expired: false });
  }

  /** QQ has no words for who presses a button, only signs: what there is to say is said in the chat. */
  async #pressed({ press, event }: Extract<Parsed, { kind: 'press' }>): Promise<void> {
    const words = await this.#inbox.press(press);
    if (words === null || words === '') return;
    this.#inBackground('a pressed button was not answered', (signal) =>
      this.#sending.answerPress(press.place, words, event, press.id, signal),
    );
  }

  /** At once, whatever the inbox does: the person sees a clock until then, and QQ takes it for some seconds only. */
  #acknowledge(parsed: Parsed): void {
    if (parsed.kind !== 'press') return;
    const path = `/interactions/${encodeURIComponent(parsed.interaction)}`;
    this.#inBackground('a pressed button was not acknowledged', async (signal) => {
      await this.#api.call({ method: 'PUT', path, json: { code: 0 } }, signal);
    });
  }

  #inBackground(failure: string, work: (signal: AbortSignal) => Promise<void>): void {
    const { runtime } = this.#api.options;
    const done = withDeadline(this.#stopped.signal, ANSWER_MS, work)
      .catch((thrown: unknown) => runtime.warn(failure, { error: sendFailureOf(thrown, this.#api.redact).message }))
      .finally(() => this.#answers.delete(done));
    this.#answers.add(done);
  }
}

/** What is in one lane is taken one after the other. */
function laneOf(parsed: Parsed): string {
  switch (parsed.kind) {
    case 'message':
      return parsed.message.place.chat;
    case 'event':
      return parsed.event.place.chat;
    case 'press':
      return parsed.press.place.chat;
    case 'audit':
      return `audit ${parsed.audit}`;
  }
}
