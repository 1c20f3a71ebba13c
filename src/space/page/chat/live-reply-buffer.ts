import type { Signal } from '@preact/signals';
import type { ApprovalState, ReplyEvent } from './send-message.ts';
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

export interface ApprovalQuestion {
  readonly id: string;
  readonly action: string;
  readonly state: ApprovalState;
}

/** Often enough to look alive, seldom enough to leave the browser time for everything else. */
const SHOW_EVERY_MS = 50;

/** Gathers what is heard, and shows it now and then. */
export class LiveReplyBuffer {
  readonly #live: Signal<Live>;
  readonly #also: (event: ReplyEvent) => void;
  #reply: string;
  #apart = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(live: Signal<Live>, also: (event: ReplyEvent) => void) {
    this.#live = live;
    this.#also = also;
    this.#reply = live.value.reply;
  }

  receive(event: ReplyEvent): void {
    this.#also(event);
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
    if (event.type === 'tool') this.#live.value = { ...live, state: 'working', tools: withTool(live.tools, event) };
    else if (event.type === 'approval') {
      this.#live.value = { ...live, state: 'working', questions: withQuestion(live.questions, event) };
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

function withTool(tools: readonly Tool[], { id, name, ok }: Tool): Tool[] {
  return [...tools.filter((tool) => tool.id !== id), { id, name, ok }];
}

function withQuestion(
  questions: readonly ApprovalQuestion[],
  { id, action, state }: ApprovalQuestion,
): ApprovalQuestion[] {
  return [...questions.filter((question) => question.id !== id), { id, action, state }];
}
