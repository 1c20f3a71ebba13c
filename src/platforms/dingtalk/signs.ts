import { ChatQueues } from '../chat-queues.ts';
import type { Place, ReactionSign } from '../platform.ts';
import type { DingtalkApi } from './api.ts';
import { Refusal, sendFailureOf } from './failures.ts';
import { readMessageRef } from './parse.ts';

const SIGNS: Readonly<Record<ReactionSign, string>> = { seen: '🤔Thinking', done: '🥳Done', failed: '😵Failed' };
const MOST_REMEMBERED = 2000;

type Target = NonNullable<ReturnType<typeof readMessageRef>>;

/**
 * Signs at messages of people. DingTalk has them and does not say so in its documentation: where they are refused, they
 * are done without.
 */
export class Signs {
  readonly #api: DingtalkApi;
  /** What stands at a message; a message whose sign a process before this one put there is not among them. */
  readonly #shown = new Map<string, ReactionSign>();
  /** One sign after the other: the next takes the place of the one before. */
  readonly #queues = new ChatQueues();
  #refused = false;

  constructor(api: DingtalkApi) {
    this.#api = api;
  }

  /** Throws `SendFailure`, except where signs are refused for good. */
  async put(place: Place, ref: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    const target = readMessageRef(ref);
    if (target !== null) await this.#queues.run(ref, () => this.#put(place, ref, target, sign, signal));
  }

  async #put(place: Place, ref: string, target: Target, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    if (this.#refused) return;
    // A message that is being answered had no other sign before.
    const before = this.#shown.get(ref) ?? (sign === 'seen' ? null : 'seen');
    try {
      if (before !== null && before !== sign) await this.#call('recall', target, before, signal);
      if (sign !== null && before !== sign) await this.#call('reply', target, sign, signal);
      this.#remember(ref, sign);
    } catch (thrown) {
      const failure = sendFailureOf(thrown, this.#api.redact);
      if (!(thrown instanceof Refusal) || thrown.status !== 403 || failure.kind !== 'forbidden') throw failure;
      this.#refused = true;
      this.#api.app.runtime.warn('DingTalk refuses signs at messages, so none are shown', {
        ...{ chat: place.chat, error: failure.message },
      });
    }
  }

  async #call(
    what: 'reply' | 'recall',
    { conversation, msgId }: Target,
    sign: ReactionSign,
    signal: AbortSignal,
  ): Promise<void> {
    const name = SIGNS[sign];
    const json = {
      robotCode: this.#api.app.robotCode,
      openMsgId: msgId,
      openConversationId: conversation,
      emotionType: 2,
      emotionName: name,
      textEmotion: { emotionId: '2659900', emotionName: name, text: name, backgroundId: 'im_bg_1' },
    };
    try {
      await this.#api.call({ path: `/v1.0/robot/emotion/${what}`, json }, signal);
    } catch (thrown) {
      // One that is not there need not be taken away.
      const isGone = what === 'recall' && thrown instanceof Refusal && thrown.status < 500 && thrown.status !== 403;
      if (!isGone || thrown.isOldToken || thrown.status === 429) throw thrown;
    }
  }

  #remember(ref: string, sign: ReactionSign | null): void {
    this.#shown.delete(ref);
    if (sign !== null) this.#shown.set(ref, sign);
    const [oldest] = this.#shown.keys();
    if (this.#shown.size > MOST_REMEMBERED && oldest !== undefined) this.#shown.delete(oldest);
  }
}
