import { ChatQueues } from '../chat-queues.ts';
import { pause } from '../deadline.ts';
import { fieldsOf, textOf } from '../fields.ts';
import type { Inbox, Incoming, Place, PlatformRuntime } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import type { Adapter, WebhookOptions } from './adapter.ts';
import { type AdapterLogger, adapterLogger } from './logger.ts';
import { baseId, digestOf, idOf, parseCommand, parseMessage, personOf, type Self } from './parse.ts';
import { WebhookRequests } from './requests.ts';
import { AdapterState } from './state.ts';
import type { ThreadIds } from './thread-ids.ts';

const RETRY_MS = 1000;
const MOST_RETRY_MS = 30_000;

export interface AdapterChatDeps {
  readonly adapter: Adapter;
  readonly threads: ThreadIds;
  readonly runtime: PlatformRuntime;
  readonly redact: Redact;
  readonly userName: string;
  /** Shows something to who pressed a button. */
  readonly show: (threadId: string, userId: string | null, text: string) => void;
}

/**
 * What adapters bring messages to. The library's own `Chat` answers for a message when it has begun to work on it, and keeps,
 * drops or joins what comes meanwhile; this one hands everything to the inbox and is done when that has it. Its methods are
 * those that the library gives its adapters, and what they return settles as there.
 */
export class AdapterChat {
  readonly requests = new WebhookRequests();
  readonly #deps: AdapterChatDeps;
  readonly #state: AdapterState;
  readonly #logger: AdapterLogger;
  readonly #queues = new ChatQueues();
  #inbox: Inbox | null = null;
  #stopped = new AbortController();

  constructor(deps: AdapterChatDeps) {
    this.#deps = deps;
    this.#state = new AdapterState(deps.runtime, this.requests);
    this.#logger = adapterLogger(deps.runtime, deps.redact);
  }

  /** From now on what comes goes there. */
  open(inbox: Inbox): void {
    this.#inbox = inbox;
    this.#stopped = new AbortController();
  }

  /** Nothing new is handed on; resolves when the inbox has finished what it has. */
  async close(): Promise<void> {
    this.#inbox = null;
    this.#stopped.abort();
    await this.#queues.settle();
  }

  processMessage(_adapter: unknown, threadId: unknown, message: unknown, options?: WebhookOptions): Promise<void> {
    return this.#hand(threadId, options, async (inbox, place) => {
      const parsed = parseMessage(await messageOf(message), place, this.#self);
      if (parsed !== null) await inbox.receive(parsed);
    });
  }

  /** The older name of the same. */
  handleIncomingMessage(adapter: unknown, threadId: unknown, message: unknown): Promise<void> {
    return this.processMessage(adapter, threadId, message);
  }

  processMessageUpdated(event: unknown, options?: WebhookOptions): Promise<void> {
    const fields = fieldsOf(event);
    return this.#hand(fields?.threadId, options, async (inbox, place) => {
      const parsed = parseMessage(await messageOf(fields?.message), place, this.#self);
      if (parsed !== null) await inbox.receive(asChanged(parsed));
    });
  }

  processMessageDeleted(event: unknown, options?: WebhookOptions): Promise<void> {
    const fields = fieldsOf(event);
    return this.#hand(fields?.threadId, options, async (inbox, place) => {
      const messageId = idOf(fields?.messageId);
      if (messageId === null) return;
      await inbox.happened({ kind: 'message_deleted', place, messageId, id: baseId(place, messageId) });
    });
  }

  processAction(event: unknown, options?: WebhookOptions): Promise<void> {
    const fields = fieldsOf(event);
    return this.#hand(fields?.threadId, options, async (inbox, place) => {
      const from = personOf(fields?.user, this.#self);
      const messageId = idOf(fields?.messageId);
      const data = textOf(fields?.value) ?? textOf(fields?.actionId);
      if (from === null || messageId === null || data === null) return;
      const shown = await inbox.press({ id: digestOf(fields?.raw), place, from, messageId, data });
      if (shown !== null) this.#deps.show(String(fields?.threadId), from.id, shown);
    });
  }

  processReaction(event: unknown, options?: WebhookOptions): Promise<void> {
    const fields = fieldsOf(event);
    return this.#hand(fields?.threadId, options, async (inbox, place) => {
      const from = personOf(fields?.user, this.#self);
      const messageId = idOf(fields?.messageId);
      const reaction = textOf(fields?.rawEmoji, 64) ?? textOf(fieldsOf(fields?.emoji)?.name, 64);
      if (from === null || messageId === null || !reaction) return;
      const kind = fields?.added === false ? 'reaction_removed' : 'reaction_added';
      await inbox.happened({ kind, place, messageId, from, reaction });
    });
  }

  processSlashCommand(event: unknown, options?: WebhookOptions): Promise<void> {
    const fields = fieldsOf(event);
    return this.#hand(fields?.channelId, options, async (inbox, place) => {
      const command = parseCommand(event, this.#parsed(fields?.raw), place, this.#self);
      if (command !== null) await inbox.receive(command);
    });
  }

  processMemberJoinedChannel(event: unknown, options?: WebhookOptions): void {
    const fields = fieldsOf(event);
    const id = idOf(fields?.userId);
    if (id === null || id === this.#self.id) return;
    void this.#hand(fields?.channelId, options, async (inbox, place) => {
      await inbox.happened({ kind: 'member_joined', place, from: { id, name: null, bot: false } });
    });
  }

  /** What has no meaning here: forms, home pages, installations. */
  async processModalSubmit(): Promise<undefined> {}
  processModalClose(): void {}
  async processOptionsLoad(): Promise<undefined> {}
  processAgentSessionStopped(): void {}
  processAgentSessionTitleChanged(): void {}
  processAppContextChanged(): void {}
  processAppHomeOpened(): void {}
  processAssistantContextChanged(): void {}
  processAssistantThreadStarted(): void {}
  processInstalled(): void {}
  processUninstalled(): void {}
  async abortTurn(): Promise<void> {}

  getState(): AdapterState {
    return this.#state;
  }

  getLogger(): AdapterLogger {
    return this.#logger;
  }

  /** Empty where the adapter is to find out by itself. */
  getUserName(): string {
    return this.#deps.userName;
  }

  get history(): never {
    throw new TypeError('the history of conversations is in the store of the gateway');
  }

  get transcripts(): never {
    return this.history;
  }

  get #self(): Self {
    const { botUserId, userName } = this.#deps.adapter;
    return { id: idOf(botUserId), name: textOf(userName, 64) || null };
  }

  /**
   * Resolves when the inbox has it. On behalf of a webhook it is tried once, as the webhook comes again; what comes in
   * another way is tried until it is taken.
   */
  #hand(
    threadId: unknown,
    options: WebhookOptions | undefined,
    hand: (inbox: Inbox, place: Place) => Promise<void>,
  ): Promise<void> {
    const scope = this.requests.current;
    const once = async (): Promise<void> => {
      if (this.#inbox === null) throw new TypeError('nothing is taken any more');
      const place = await this.#deps.threads.placeOf(threadId);
      if (place !== null) await hand(this.#inbox, place);
    };
    const lane = this.#deps.threads.laneOf(threadId);
    const task = this.#queues.run(lane, scope === null ? () => this.#untilTaken(once) : once);
    // Whoever does not wait for it leaves no rejection behind.
    const handled = task.catch((thrown: unknown) => {
      const error = this.#deps.redact(String(thrown));
      this.#deps.runtime.warn('what an adapter brought was not taken', { error });
    });
    if (scope !== null) this.requests.track(scope, task);
    options?.waitUntil?.(scope === null ? handled : task);
    return task;
  }

  async #untilTaken(once: () => Promise<void>): Promise<void> {
    const { runtime } = this.#deps;
    const { signal } = this.#stopped;
    for (let wait = RETRY_MS; ; wait = Math.min(wait * 2, MOST_RETRY_MS)) {
      try {
        return await once();
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        await pause(runtime, wait * (0.5 + runtime.random() / 2), signal);
      }
    }
  }

  /** What the adapter makes of a raw message; undefined for what is none. */
  #parsed(raw: unknown): unknown {
    try {
      return this.#deps.adapter.parseMessage(raw);
    } catch {
      return undefined;
    }
  }
}

async function messageOf(message: unknown): Promise<unknown> {
  return typeof message === 'function' ? await (message as () => unknown)() : message;
}

/** Some platforms tell by the kind of their event that a message was changed, and not by the message. */
function asChanged(message: Incoming): Incoming {
  return message.edited ? message : { ...message, id: `${message.id}:${digestOf(message.text)}`, edited: true };
}
