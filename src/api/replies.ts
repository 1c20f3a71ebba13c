import { MoiraiError } from '../errors/moirai-error.ts';
import type { TurnEvent } from '../turns/turn-event.ts';
import type { ApiContext, ApiLog } from './api.ts';
import type { AcceptedTurn, Reply } from './backend.ts';
import { hintOf, type ShownError, statusOf } from './error-answer.ts';
import { HEARTBEAT_MS, type Listener } from './event-stream.ts';
import { Mailbox } from './mailbox.ts';

/** What may wait for a client that listens to its own turn; the turn goes on without one who does not read. */
const MAILBOX_CHARS = 4 * 1024 * 1024;

export type TurnNews = { readonly event: TurnEvent } | { readonly reply: Reply } | { readonly failure: MoiraiError };

/** The status of each outcome. */
export function statusOfReply({ outcome }: Reply): 200 | 502 | 504 {
  if (outcome === 'failed') return 502;
  return outcome === 'timeout' ? 504 : 200;
}

/** What went wrong in a turn; null when nothing did. */
export function errorOfReply(reply: Reply): ShownError | null {
  if (statusOfReply(reply) === 200) return null;
  const code = reply.errorCode ?? (reply.outcome === 'timeout' ? 'turn_timeout' : 'internal');
  return { code, message: reply.text === '' ? `the turn ended as ${reply.outcome}` : reply.text, hint: hintOf(code) };
}

/** Names session and turn where clients with shapes of their own can find them. */
export function nameTurn(c: ApiContext, { sessionId, turnId }: Pick<Reply, 'sessionId' | 'turnId'>): void {
  const { outgoing } = c.env;
  outgoing.setHeader('x-moirai-session', sessionId);
  if (turnId !== null) outgoing.setHeader('x-moirai-turn', turnId);
}

/**
 * What is told of a turn. It listens from the moment it is made, which is when the turn was taken: nothing is missed while
 * the answer is on its way. Who stops listening stops nothing.
 */
export class TurnFeed {
  readonly #mailbox = new Mailbox<TurnNews>(MAILBOX_CHARS);
  #drop: () => void = () => undefined;

  constructor(accepted: AcceptedTurn, log: ApiLog) {
    const stopWatching = accepted.events?.watch((event) => {
      if (!this.#mailbox.put({ event }, sizeOf(event))) this.#drop();
    });
    const end = (news: TurnNews): void => {
      stopWatching?.();
      this.#mailbox.close(news);
    };
    accepted.reply.then(
      (reply) => end({ reply }),
      (thrown: unknown) => {
        const failure = MoiraiError.wrap(thrown);
        // The client is told no more than that there is a defect.
        if (statusOf(failure.code) === 500) {
          log.error('a turn was lost sight of', { session: accepted.sessionId, turn: accepted.turnId, error: failure });
        }
        end({ failure });
      },
    );
  }

  /** The turn as it goes on, its end last; null now and then while nothing happens. */
  async *news(listener: Listener): AsyncGenerator<TurnNews | null> {
    this.#drop = listener.drop;
    const leave = (): void => this.#mailbox.close();
    listener.signal.addEventListener('abort', leave);
    try {
      for (;;) {
        const news = await this.#mailbox.take(HEARTBEAT_MS);
        if (news === null) return;
        if (news.length === 0) yield null;
        yield* news;
      }
    } finally {
      listener.signal.removeEventListener('abort', leave);
      this.#mailbox.close();
    }
  }
}

function sizeOf(event: TurnEvent): number {
  if (event.type === 'question') return event.action.length + 500;
  return event.type === 'text' || event.type === 'reasoning' ? event.text.length + 100 : 500;
}

/**
 * The text of a reply, piece by piece, so that the pieces give the reply. What was said before somebody listened, or was
 * never told in pieces, comes at the end.
 */
export class ReplyText {
  #sent = '';

  /** A piece of a running turn. */
  piece(text: string): string {
    this.#sent += text;
    return text;
  }

  /** What is missing of the whole; nothing when the pieces told more than the reply keeps. */
  rest(whole: string): string {
    if (whole.startsWith(this.#sent)) return whole.slice(this.#sent.length);
    return this.#sent.endsWith(whole) ? '' : `\n\n${whole}`;
  }

  get sent(): string {
    return this.#sent;
  }
}
