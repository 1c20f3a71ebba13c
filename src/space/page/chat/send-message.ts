import { AnswerError } from '../data/answer-error.ts';
import { readEvents } from '../data/event-reader.ts';
import type { Source } from '../data/source.ts';

/** Something to be said, under a key of its own: however often it is sent, it is answered once. */
export interface OutgoingMessage {
  readonly conversation: string;
  readonly text: string;
  readonly key: string;
  /** The turn it is known to be; null before it was taken. */
  readonly turnId: string | null;
}

/** What is heard before the end. */
export type ReplyEvent =
  | { readonly type: 'taken'; readonly sessionId: string; readonly turnId: string | null }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool'; readonly id: string; readonly name: string; readonly ok: boolean | null }
  | ApprovalQuestion
  /** The connection is lost; it is tried again. */
  | { readonly type: 'apart' };

/** What the agent asks to be allowed. */
export interface ApprovalQuestion {
  readonly type: 'approval';
  readonly id: string;
  readonly action: string;
  readonly state: 'asked' | 'allowed' | 'denied';
}

/** How it came out. */
export interface Outcome {
  readonly session_id: string;
  readonly turn_id: string | null;
  readonly reply: string;
  readonly outcome: 'done' | 'failed' | 'interrupted' | 'timeout';
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string };
}

/** The connection broke, and it is not known what became of what was said. */
export class ConnectionLost extends Error {}

const QUIET_MS = 45_000;
const LONGEST_PAUSE_MS = 5000;
/** No gateway has accepted it yet, and a person waits. */
const TRIES_BEFORE_TAKEN = 3;
/** It is safe in the gateway, which may be restarting. */
const TRIES_AFTER_TAKEN = 200;

export const isCommand = (text: string): boolean => /^\s*\/[a-z][\w-]*(@\S+)?(\s|$)/i.test(text);

/**
 * Says something and waits for the end, over lost connections and restarts of the gateway. Throws `AnswerError` for a
 * refusal and `ConnectionLost` when it gives up.
 */
export async function sendMessage(
  source: Source,
  message: OutgoingMessage,
  receive: (event: ReplyEvent) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  let { turnId } = message;
  let failures = 0;
  const listen = (event: ReplyEvent): void => {
    failures = 0;
    if (event.type === 'taken') turnId = event.turnId;
    receive(event);
  };
  for (;;) {
    try {
      return await sendOnce(source, message, listen, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      failures++;
      if (!isWorthAnother(thrown, message, turnId !== null, failures)) throw asLoss(thrown);
    }
    receive({ type: 'apart' });
    await new Promise((resume) => setTimeout(resume, Math.min(LONGEST_PAUSE_MS, 250 * 2 ** failures)));
  }
}

async function sendOnce(
  source: Source,
  { conversation, text, key }: OutgoingMessage,
  receive: (event: ReplyEvent) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const silence = new AbortController();
  const body = { text, conversation, platform: 'web', idempotency_key: key, stream: true };
  let timer = setTimeout(() => silence.abort(), QUIET_MS);
  try {
    const response = await source.fetch('/v1/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!response.ok || response.body === null) throw await AnswerError.from(response);
    for await (const event of readEvents(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), QUIET_MS);
      if (event === null) continue;
      const end = understand(event.event, JSON.parse(event.data), receive);
      if (end !== null) return end;
    }
    throw new ConnectionLost('the reply broke off');
  } finally {
    clearTimeout(timer);
  }
}

interface Frame extends Outcome {
  readonly text: string;
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly ok: boolean;
  readonly action: string;
}

function understand(event: string, data: Frame, receive: (event: ReplyEvent) => void): Outcome | null {
  if (event === 'session') receive({ type: 'taken', sessionId: data.session_id, turnId: data.turn_id });
  else if (event === 'text') receive({ type: 'text', text: data.text });
  else if (event === 'tool') {
    receive({ type: 'tool', id: data.id, name: data.name, ok: data.state === 'end' ? data.ok : null });
  } else if (event === 'approval') {
    receive({ type: 'approval', id: data.id, action: data.action, state: data.state as ApprovalQuestion['state'] });
  } else if (event === 'done') {
    // The gateway stops, and the turn goes on in the next one: the page connects again.
    if (data.error?.code === 'turn_interrupted') throw new ConnectionLost(data.error.message);
    return data;
  }
  return null;
}

function isWorthAnother(thrown: unknown, { text }: OutgoingMessage, taken: boolean, failures: number): boolean {
  if (thrown instanceof AnswerError) return taken && isPassing(thrown) && failures < TRIES_AFTER_TAKEN;
  // A command that is no turn has no key: sent twice, it may be done twice.
  if (!taken) return !isCommand(text) && failures < TRIES_BEFORE_TAKEN;
  return failures < TRIES_AFTER_TAKEN;
}

function isPassing({ status, code }: AnswerError): boolean {
  return code === 'draining' || status === 502 || status === 503 || status === 504;
}

function asLoss(thrown: unknown): unknown {
  return thrown instanceof AnswerError ? thrown : new ConnectionLost('the connection was lost', { cause: thrown });
}
