import type { PlatformRuntime } from '../platform.ts';
import { type Outgoing, type Place, type ReactionSign, SendFailure, type SentMessage } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import type { Adapter, Postable } from './adapter.ts';
import { ended } from './ended.ts';
import { says, sendFailureOf } from './failures.ts';
import { idOf } from './parse.ts';
import { postableOf } from './render.ts';
import type { ThreadIds } from './thread-ids.ts';

const CALL_MS = 30_000;
const FILE_MS = 60_000;
const MOST_SIGNS = 1000;
const SIGNS = { seen: 'eyes', done: 'thumbs_up', failed: 'thumbs_down' } as const satisfies Record<
  ReactionSign,
  string
>;

export interface SendingDeps {
  readonly adapter: Adapter;
  readonly threads: ThreadIds;
  readonly runtime: PlatformRuntime;
  readonly redact: Redact;
  /** Its platform reads Markdown itself. */
  readonly raw: boolean;
}

/** The calls of an adapter that concern a thread. They know no signal: a call that is called off is left to itself. */
export class Sending {
  readonly #deps: SendingDeps;
  /** Which sign we put at a message. */
  readonly #signs = new Map<string, ReactionSign>();

  constructor(deps: SendingDeps) {
    this.#deps = deps;
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    const { adapter, raw } = this.#deps;
    const { replyTo } = message;
    const sent = await this.#call(place, signal, (threadId) => {
      const postable = postableOf(message, raw);
      if (replyTo === undefined || adapter.reply === undefined) return adapter.postMessage(threadId, postable);
      return adapter.reply(threadId, replyTo, postable);
    });
    return { messageId: idOf(sent.id) ?? '' };
  }

  async edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    const { adapter, raw } = this.#deps;
    await this.#call(place, signal, (threadId) =>
      unless(adapter.editMessage?.(threadId, messageId, postableOf(message, raw)), /not modified/i),
    );
  }

  async remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    const { adapter } = this.#deps;
    await this.#call(place, signal, (threadId) => unless(adapter.deleteMessage?.(threadId, messageId), /not found/i));
  }

  async showTyping(place: Place, signal: AbortSignal): Promise<void> {
    await this.#call(place, signal, async (threadId) => this.#deps.adapter.startTyping?.(threadId));
  }

  /** One sign at a time: some platforms replace it, others put one beside the other. */
  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    const { adapter } = this.#deps;
    const key = JSON.stringify([place.chat, place.thread, messageId]);
    const before = this.#signs.get(key);
    // Which one a process before this one put there nobody knows.
    const wrong = before === undefined ? (sign === null ? (['seen', 'done', 'failed'] as const) : []) : [before];
    await this.#call(place, signal, async (threadId) => {
      for (const each of wrong) {
        if (each !== sign) await unless(adapter.removeReaction?.(threadId, messageId, SIGNS[each]), /not found/i);
      }
      if (sign !== null) await adapter.addReaction?.(threadId, messageId, SIGNS[sign]);
    });
    this.#signs.delete(key);
    if (sign !== null) this.#signs.set(key, sign);
    const [oldest] = this.#signs.keys();
    if (this.#signs.size > MOST_SIGNS && oldest !== undefined) this.#signs.delete(oldest);
  }

  /** Shows a few words to who pressed a button: to them alone where that can be done. */
  async show(threadId: string, userId: string | null, text: string): Promise<void> {
    const { adapter, runtime, redact } = this.#deps;
    const words: Postable = { markdown: text };
    try {
      if (userId !== null && adapter.postEphemeral !== undefined) {
        if ((await adapter.postEphemeral(threadId, userId, words)) !== null) return;
      }
      await adapter.postMessage(threadId, words);
    } catch (thrown) {
      runtime.warn('a pressed button was not answered', { error: redact(String(thrown)) });
    }
  }

  /** Adapters read files as a whole; what is larger than allowed is not kept. */
  async openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const { adapter, redact } = this.#deps;
    const attachment = JSON.parse(ref) as { readonly size?: unknown };
    if (typeof attachment.size === 'number' && attachment.size > maxBytes) throw tooLarge(maxBytes);
    try {
      const file = adapter.rehydrateAttachment?.(attachment);
      if (file?.fetchData === undefined) throw new SendFailure('the adapter cannot fetch this file', null);
      const bytes = new Uint8Array(await ended(file.fetchData(), FILE_MS, signal));
      if (bytes.length > maxBytes) throw tooLarge(maxBytes);
      return bytes;
    } catch (thrown) {
      throw sendFailureOf(thrown, redact);
    }
  }

  async #call<T>(place: Place, signal: AbortSignal, call: (threadId: string) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const threadId = await this.#deps.threads.threadOf(place);
    try {
      return await ended(call(threadId), CALL_MS, signal);
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#deps.redact);
    }
  }
}

async function unless(call: Promise<unknown> | undefined, words: RegExp): Promise<void> {
  try {
    await call;
  } catch (thrown) {
    if (!says(thrown, words)) throw thrown;
  }
}

function tooLarge(maxBytes: number): SendFailure {
  return new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
}
