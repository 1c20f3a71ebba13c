import { MoiraiError } from '../errors/moirai-error.ts';
import type { TurnEvent } from '../turns/turn-event.ts';
import type { ApiContext, ApiParts } from './api.ts';
import type { AcceptedTurn, Reply } from './backend.ts';
import { hintOf, type ShownError, statusOf } from './error-answer.ts';
import { HEARTBEAT, HEARTBEAT_MS, streamEvents } from './event-stream.ts';
import { Mailbox } from './mailbox.ts';

/** What may wait for a client that listens to its own turn; the turn goes on without one who does not read. */
const MAILBOX_CHARS = 4 * 1024 * 1024;

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

/** How one kind of client reads a turn: the text of its server-sent events, empty for what it has no use for. */
export interface TurnWriter {
  opening(): string;
  event(event: TurnEvent): string;
  /** The turn is over. */
  reply(reply: Reply): string;
  /** Nothing is known of how the turn ended. */
  failure(failure: MoiraiError): string;
}

/**
 * Answers with a turn as a stream. It listens from now on, which is when the turn was taken: nothing is missed while the
 * answer is on its way. A client that stops listening does not stop the turn.
 */
export function streamTurn(c: ApiContext, parts: ApiParts, accepted: AcceptedTurn, writer: TurnWriter): Response {
  const mailbox = new Mailbox<string>(MAILBOX_CHARS);
  const put = (text: string): void => {
    if (text !== '' && !mailbox.put(text, text.length)) c.env.outgoing.destroy();
  };
  put(writer.opening());
  const stopWatching = accepted.events?.watch((event) => put(writer.event(event)));
  const end = (text: string): void => {
    stopWatching?.();
    mailbox.close(text);
  };
  accepted.reply.then(
    (reply) => end(writer.reply(reply)),
    (thrown: unknown) => {
      const failure = MoiraiError.wrap(thrown);
      // The client only learns that there is a defect.
      if (statusOf(failure.code) === 500) {
        const { sessionId: session, turnId: turn } = accepted;
        parts.log.error('a turn was lost sight of', { session, turn, error: failure });
      }
      end(writer.failure(failure));
    },
  );
  return streamEvents(c, parts.closing, async function* ({ signal }) {
    for await (const texts of mailbox.batches(HEARTBEAT_MS, signal)) {
      yield texts.length === 0 ? HEARTBEAT : texts.join('');
    }
  });
}

/**
 * The text of a reply, piece by piece, so that the pieces give the reply. What was said before the client listened, or was
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
