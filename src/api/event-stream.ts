import type { ApiContext } from './api.ts';

/** How often a quiet stream says that it lives. */
export const HEARTBEAT_MS = 15_000;
/** A connection on which nothing could be sent for so long is given up. */
const STALL_MS = 60_000;

export const HEARTBEAT = ': still here\n\n';

/** One server-sent event. */
export function frame(data: unknown, facts: { event?: string; id?: number } = {}): string {
  const event = facts.event === undefined ? '' : `event: ${facts.event}\n`;
  const id = facts.id === undefined ? '' : `id: ${facts.id}\n`;
  return `${id}${event}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** The other end of a stream. */
export interface Listener {
  /** Aborted when it has gone, or the server closes. */
  readonly signal: AbortSignal;
  /** Breaks the connection: for one who does not read. */
  drop(): void;
}

/**
 * Answers with a stream of server-sent events. The source is asked for more only when the client has taken what there
 * was, so nothing piles up behind a slow one. A source that throws breaks the connection off, as the headers have left.
 */
export function streamEvents(
  c: ApiContext,
  closing: AbortSignal,
  source: (listener: Listener) => AsyncGenerator<string>,
): Response {
  const { outgoing } = c.env;
  const gone = new AbortController();
  const listener: Listener = {
    signal: AbortSignal.any([gone.signal, closing]),
    drop: () => outgoing.destroy(),
  };
  const chunks = source(listener);
  const leave = (): void => {
    gone.abort();
    // A source that waits for the client to take something waits for nothing now.
    void chunks.return(undefined);
  };
  outgoing.on('close', leave);
  outgoing.setTimeout(STALL_MS, () => outgoing.destroy());
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  c.header('Content-Type', 'text/event-stream; charset=utf-8');
  c.header('Cache-Control', 'no-store');
  // Proxies that collect answers before they pass them on are asked not to.
  c.header('X-Accel-Buffering', 'no');
  return c.body(body, 200);
}

/** Whether the client wants a stream: of the two kinds of answer, the one it names first. */
export function wantsStream(c: ApiContext): boolean {
  const accepted = (c.req.header('accept') ?? '').toLowerCase();
  const stream = accepted.indexOf('text/event-stream');
  const json = accepted.indexOf('application/json');
  return stream >= 0 && (json < 0 || stream < json);
}
