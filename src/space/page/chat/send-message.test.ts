import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AnswerError } from '../data/answer-error.ts';
import type { Source } from '../data/source.ts';
import { ConnectionLost, isCommand, type OutgoingMessage, type ReplyEvent, sendMessage } from './send-message.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const MESSAGE: OutgoingMessage = { conversation: 'c', text: 'hello', key: 'k', turnId: null };
const TAKEN = event('session', { session_id: 's', turn_id: 't' });
const DONE = { session_id: 's', turn_id: 't', reply: 'good day', outcome: 'done' };

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** An answer in pieces, torn anywhere; broken off at the end when it is cut. */
function stream(text: string, { cut = false, size = 7 } = {}): Response {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = bytes.slice(at, at + size);
      at += size;
      if (piece.length > 0) controller.enqueue(piece);
      else if (cut) controller.error(new TypeError('network error'));
      else controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

const refusal = (status: number, code: string): Response =>
  Response.json({ error: { code, message: 'no', hint: 'Wait.' } }, { status });

/** Gives one answer after another. */
function gateway(...answers: (() => Response)[]): { source: Source; bodies: Record<string, unknown>[] } {
  const bodies: Record<string, unknown>[] = [];
  const fetch = async (_path: string, init?: RequestInit): Promise<Response> => {
    bodies.push(JSON.parse(String(init?.body)));
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError('nobody there');
    return answer();
  };
  return { source: { id: 'here', name: 'here', base: '', fetch }, bodies };
}

async function send(source: Source, changes: Partial<OutgoingMessage> = {}) {
  const received: ReplyEvent[] = [];
  const never = new AbortController().signal;
  const end = sendMessage(source, { ...MESSAGE, ...changes }, (event) => received.push(event), never);
  end.catch(() => undefined);
  await vi.runAllTimersAsync();
  return { received, end };
}

describe('what is said', () => {
  test('is answered piece by piece', async () => {
    const events = [TAKEN, ': still here\n\n', event('text', { text: 'good ' }), event('text', { text: 'däy' })];
    const tool = event('tool', { id: '1', name: 'look', state: 'start', args: {} });
    const toolEnd = event('tool', { id: '1', name: 'look', state: 'end', ok: false });
    const { source, bodies } = gateway(() => stream([...events, tool, toolEnd, event('done', DONE)].join('')));
    const { received, end } = await send(source);
    expect(await end).toEqual(DONE);
    expect(received).toEqual([
      { type: 'taken', sessionId: 's', turnId: 't' },
      { type: 'text', text: 'good ' },
      { type: 'text', text: 'däy' },
      { type: 'tool', id: '1', name: 'look', ok: null },
      { type: 'tool', id: '1', name: 'look', ok: false },
    ]);
    expect(bodies).toEqual([{ text: 'hello', conversation: 'c', platform: 'web', idempotency_key: 'k', stream: true }]);
  });

  test('is asked for again under the same key when the connection breaks', async () => {
    const { source, bodies } = gateway(
      () => stream(TAKEN + event('text', { text: 'go' }), { cut: true }),
      () => refusal(502, 'gateway_unreachable'),
      () => stream(TAKEN + event('done', { ...DONE, error: { code: 'turn_interrupted', message: '', hint: '' } })),
      () => stream(TAKEN),
      () => stream(TAKEN + event('done', DONE)),
    );
    const { received, end } = await send(source);
    expect(await end).toEqual(DONE);
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(received.filter(({ type }) => type === 'apart')).toHaveLength(4);
  });

  test('is given up after a few tries when nobody has received it', async () => {
    const { source, bodies } = gateway();
    const { end } = await send(source);
    await expect(end).rejects.toThrow(ConnectionLost);
    expect(bodies).toHaveLength(3);
  });

  test('is not said again to one who refuses it', async () => {
    const { source, bodies } = gateway(() => refusal(503, 'draining'));
    const { end } = await send(source);
    await expect(end).rejects.toThrow(AnswerError);
    expect(bodies).toHaveLength(1);
  });

  test('is asked for again when nothing is received for long', async () => {
    const silent = (): Response => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array([58])) }));
    const { source } = gateway(silent, () => stream(TAKEN + event('done', DONE)));
    const answering: Source = {
      ...source,
      fetch: async (path, init) => {
        const response = await source.fetch(path, init);
        const body = new ReadableStream<Uint8Array>({
          async start(controller) {
            init?.signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
            for await (const bytes of response.body ?? []) controller.enqueue(bytes);
            controller.close();
          },
        });
        return new Response(body);
      },
    };
    const { end } = await send(answering);
    expect(await end).toEqual(DONE);
  });

  test('is a command that is never repeated by itself, as it may have been done', async () => {
    const { source, bodies } = gateway();
    const { end } = await send(source, { text: '/new' });
    await expect(end).rejects.toThrow(ConnectionLost);
    expect(bodies).toHaveLength(1);
  });

  test('is sent again as it was, also with /queue', async () => {
    const { source, bodies } = gateway(
      () => stream(TAKEN, { cut: true }),
      () => stream(TAKEN + event('done', DONE)),
    );
    const { end } = await send(source, { text: '/queue  later ' });
    expect(await end).toEqual(DONE);
    expect(bodies.map(({ text }) => text)).toEqual(['/queue  later ', '/queue  later ']);
  });
});

test('a path is no command', () => {
  expect(['/new', ' /title a b', '/cron@bot', '/a-b'].map(isCommand)).toEqual([true, true, true, true]);
  expect(['/etc/hosts is wrong', 'a /new', '/', '/1'].map(isCommand)).toEqual([false, false, false, false]);
});
