import { withDeadline } from '../deadline.ts';
import type { Incoming, PlatformRuntime, Press } from '../platform.ts';
import { WINDOW_MS } from './parse.ts';
import type { Sending } from './send.ts';

const CALL_MS = 10_000;
const GRACE_MS = 1000;

/** What follows at once from what somebody did, and nobody waits for: a read mark, the answer to a press. */
export class Answers {
  readonly #sending: Sending;
  readonly #runtime: Pick<PlatformRuntime, 'after' | 'warn'>;
  readonly #open = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(sending: Sending, runtime: Pick<PlatformRuntime, 'after' | 'warn'>) {
    this.#sending = sending;
    this.#runtime = runtime;
  }

  /** They see that it was read. Who does not see that has lost nothing. */
  markRead({ place, messageId }: Incoming): void {
    this.#run((signal) => this.#sending.markRead(place, messageId, false, signal), null);
  }

  /** WhatsApp shows nothing to who pressed a button but a message. */
  answerPress({ id, place }: Press, messageId: string, at: number, text: string): void {
    const reply = { messageId, data: {}, until: at + WINDOW_MS };
    const message = { text, replyTo: messageId, reply, key: `${id}:answer` };
    this.#run((signal) => this.#sending.send(place, message, signal), 'a pressed button was not answered');
  }

  /** What is under way gets a moment. */
  async settle(): Promise<void> {
    const enough = this.#runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#open);
    enough();
  }

  #run(call: (signal: AbortSignal) => Promise<unknown>, trouble: string | null): void {
    const done = withDeadline(this.#stopped.signal, CALL_MS, call).then(
      () => undefined,
      (thrown: unknown) => {
        if (trouble !== null) this.#runtime.warn(trouble, { error: String(thrown) });
      },
    );
    const open = done.finally(() => this.#open.delete(open));
    this.#open.add(open);
  }
}
