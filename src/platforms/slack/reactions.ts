import type { Place, ReactionSign } from '../platform.ts';
import { timeOf } from './places.ts';
import type { Sending } from './send.ts';

const SIGNS = { seen: 'eyes', done: 'white_check_mark', failed: 'x' } as const satisfies Record<ReactionSign, string>;
const MOST_REMEMBERED = 1000;

/** Signs at messages of people: Slack lets an app put several there, and we show one. */
export class Reactions {
  readonly #sending: Sending;
  /** What stands at a message, where this process has put it there. */
  readonly #shown = new Map<string, string | null>();

  constructor(sending: Sending) {
    this.#sending = sending;
  }

  /** Throws `SendFailure`. */
  async show({ chat }: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    // A slash command is no message: there is nothing to put a sign at.
    if (timeOf(messageId) === null) return;
    const name = sign === null ? null : SIGNS[sign];
    const target = { channel: chat, timestamp: messageId };
    const before = this.#shown.get(`${chat}:${messageId}`);
    if (name !== null) await this.#sending.callUnless('reactions.add', { ...target, name }, signal, 'already_reacted');
    this.#remember(`${chat}:${messageId}`, name);
    // A process before this one may have put any there.
    const others = before === undefined ? Object.values(SIGNS) : before === null ? [] : [before];
    for (const other of others.filter((each) => each !== name)) {
      await this.#sending.callUnless('reactions.remove', { ...target, name: other }, signal, 'no_reaction');
    }
  }

  #remember(message: string, name: string | null): void {
    this.#shown.set(message, name);
    if (this.#shown.size > MOST_REMEMBERED)
      for (const oldest of this.#shown.keys()) return void this.#shown.delete(oldest);
  }
}
