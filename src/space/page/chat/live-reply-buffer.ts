import type { Signal } from '@preact/signals';
import type { ApprovalQuestion, ReplyEvent } from './send-message.ts';
import type { Tool } from './transcript.ts';

/** What is heard of a reply before it is in the transcript. */
export interface Live {
  readonly state: 'sending' | 'working' | 'apart' | 'failed';
  readonly reply: string;
  readonly tools: readonly Tool[];
  /** What the agent asked leave for. */
  readonly questions: readonly ApprovalQuestion[];
  /** Why it could not be said, and what to do. */
  readonly trouble: string | null;
}

/** Often enough to look alive, seldom enough to leave the browser time for everything else. */
const SHOW_EVERY_MS = 50;

/** Gathers what is heard, and shows it now and then. */
export class LiveReplyBuffer {
  readonly #live: Signal<Live>;
  #reply: string;
  #apart = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(live: Signal<Live>) {
    this.#live = live;
    this.#reply = live.value.reply;
  }

  receive(event: ReplyEvent): void {
    if (event.type === 'text') {
      // What was said in between is not told again; the whole comes at the end.
      if (this.#apart && this.#reply !== '') this.#reply += '\n\n…\n\n';
      this.#apart = false;
      this.#reply += event.text;
      this.#timer ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
      return;
    }
    const { value: live } = this.#live;
    if (event.type === 'apart') this.#apart = true;
    if (event.type === 'tool') this.#live.value = { ...live, state: 'working', tools: withNewest(live.tools, event) };
    else if (event.type === 'approval') {
      this.#live.value = { ...live, state: 'working', questions: withNewest(live.questions, event) };
    } else this.#live.value = { ...live, state: event.type === 'apart' ? 'apart' : 'working' };
  }

  #show(): void {
    this.#timer = undefined;
    this.#live.value = { ...this.#live.value, state: 'working', reply: this.#reply };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#show();
  }
}

/** The newest last, each once. */
function withNewest<T extends { readonly id: string }>(all: readonly T[], newest: T): T[] {
  return [...all.filter(({ id }) => id !== newest.id), newest];
}
