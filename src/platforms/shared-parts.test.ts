import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ChatQueues } from './chat-queues.ts';
import { KeptCursor } from './cursor.ts';
import { withDeadline } from './deadline.ts';
import { callHttp, downloadFrom, retryAfter, unanswered } from './http.ts';
import { LowWater } from './low-water.ts';
import type { PlatformRuntime } from './platform.ts';
import { Recent } from './recent.ts';
import { redaction } from './redaction.ts';
import { hmacSha256, isFresh, isSame } from './signatures.ts';
import { splitText } from './split-text.ts';

const never = new AbortController().signal;

describe('the low-water mark', () => {
  test('moves only past what has nothing open before it', () => {
    const marks = new LowWater<number>();
    const [one, two, three] = [1, 2, 3].map((position) => marks.begin(position)) as [Done, Done, Done];
    expect([marks.mark, marks.size]).toEqual([null, 3]);
    expect(two()).toBe(false);
    expect(marks.mark).toBeNull();
    expect(one()).toBe(true);
    expect([marks.mark, marks.size]).toEqual([2, 1]);
    expect(three()).toBe(true);
    expect(marks.mark).toBe(3);
  });

  test('forgets what comes again from the server, and what is done of it moves nothing', () => {
    const marks = new LowWater<number>();
    marks.begin(1)();
    const late = marks.begin(2);
    marks.clear();
    expect(late()).toBe(false);
    expect([marks.mark, marks.size]).toEqual([1, 0]);
  });
});

type Done = () => boolean;

describe('a kept cursor', () => {
  function runtime(refuse = false) {
    const kept: string[] = [];
    const timers: (() => void)[] = [];
    const warnings: string[] = [];
    const parts: Partial<PlatformRuntime> = {
      keep: async (_, value) => {
        if (refuse) throw new TypeError('not now');
        kept.push(String(value));
      },
      recall: async () => kept.at(-1) ?? 'from before',
      after: (_, callback) => {
        timers.push(callback);
        return () => void timers.splice(timers.indexOf(callback), 1);
      },
      warn: (message) => void warnings.push(message),
    };
    return { kept, timers, warnings, runtime: parts as PlatformRuntime };
  }

  test('writes the newest position once in a while, and what is left when it is flushed', async () => {
    const scene = runtime();
    const cursor = new KeptCursor(scene.runtime, 'cursor');
    expect(await cursor.read()).toBe('from before');
    for (const position of ['1', '2', '3']) cursor.moveTo(position);
    expect([scene.kept, scene.timers.length]).toEqual([[], 1]);
    scene.timers[0]?.();
    await cursor.flush();
    expect(scene.kept).toEqual(['3']);
    cursor.moveTo('4');
    expect(await cursor.read()).toBe('4');
    await cursor.flush();
    await cursor.flush();
    expect(scene.kept).toEqual(['3', '4']);
  });

  test('that cannot be written says so and goes on', async () => {
    const scene = runtime(true);
    const cursor = new KeptCursor(scene.runtime, 'cursor');
    cursor.moveTo('1');
    await cursor.flush();
    expect(scene.warnings).toHaveLength(1);
  });
});

test('chats are worked on beside each other, each in order, and what fails holds nothing back', async () => {
  const queues = new ChatQueues();
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = queues.run('a', async () => {
    await promise;
    order.push('a1');
    throw new TypeError('failed');
  });
  const second = queues.run('a', async () => void order.push('a2'));
  await queues.run('b', async () => void order.push('b1'));
  expect(order).toEqual(['b1']);
  resolve();
  await expect(first).rejects.toThrow('failed');
  await second;
  await queues.settle();
  expect(order).toEqual(['b1', 'a1', 'a2']);
});

describe('a call with a deadline', () => {
  const forever = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  test('ends in time, or with the signal of its caller, and is not begun behind that', async () => {
    const caller = new AbortController();
    await expect(withDeadline(caller.signal, 20, forever)).rejects.toMatchObject({ name: 'TimeoutError' });
    const ended = withDeadline(caller.signal, 60_000, forever);
    caller.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    await expect(withDeadline(caller.signal, 60_000, async () => 'begun')).rejects.toThrow('enough');
  });

  test('leaves nothing behind: neither a listener nor a timer', async () => {
    const { signal } = new AbortController();
    const { promise, resolve } = Promise.withResolvers<AbortSignal>();
    await withDeadline(signal, 20, async (deadline) => {
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      resolve(deadline);
    });
    await withDeadline(signal, 20, () => Promise.reject(new Error('no'))).catch(() => undefined);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await sleep(50);
    expect((await promise).aborted).toBe(false);
  });
});

describe('a request', () => {
  async function serve(handle: Parameters<typeof createServer>[1]) {
    const server = createServer(handle);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const close = async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
  }

  test('is answered with what it was, whatever the status, and follows no redirect', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/away') response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
      else response.writeHead(418, { 'retry-after': '2' }).end('{"odd":true}');
    });
    const answer = await callHttp(`${server.url}/x`, { method: 'POST', json: { a: 1 } }, 1000, never);
    expect([answer.status, answer.body, retryAfter(answer.headers, 0)]).toEqual([418, { odd: true }, 2000]);
    expect((await callHttp(`${server.url}/away`, {}, 1000, never)).status).toBe(302);
  });

  test('that cannot have left is transient, and one that was not answered is uncertain', async () => {
    const kindOf = async (url: string) => {
      const failure = await callHttp(url, {}, 300, never).catch((thrown: unknown) => thrown);
      return unanswered(failure, (text) => text).kind;
    };
    const gone = await serve(() => undefined);
    await gone[Symbol.asyncDispose]();
    expect(await kindOf(gone.url)).toBe('transient');
    expect(await kindOf('http://no-such-host.invalid/')).toBe('transient');
    await using cut = await serve((request) => request.socket.destroy());
    expect(await kindOf(cut.url)).toBe('uncertain');
    await using silent = await serve(() => undefined);
    expect(await kindOf(silent.url)).toBe('uncertain');
  });

  test('for a file ends as soon as it is larger than allowed, whatever it says', async () => {
    await using server = await serve((_, response) => {
      response.writeHead(200);
      for (let i = 0; i < 100; i++) response.write(Buffer.alloc(1000));
      response.end();
    });
    await expect(downloadFrom(server.url, {}, 5000, never)).rejects.toMatchObject({ kind: 'too_large' });
    expect((await downloadFrom(server.url, {}, 100_000, never)).length).toBe(100_000);
  });

  test('for an answer ends as soon as it is larger than allowed, and more can be allowed', async () => {
    await using server = await serve((_, response) => response.end(JSON.stringify('x'.repeat(5_000_000))));
    await expect(callHttp(server.url, {}, 5000, never)).rejects.toMatchObject({ kind: 'too_large' });
    const { body } = await callHttp(server.url, { mostBytes: 6_000_000 }, 5000, never);
    expect(body).toHaveLength(5_000_000);
  });

  test('asks for patience in seconds or until a date', () => {
    const headers = (value: string) => new Headers({ 'retry-after': value });
    expect(retryAfter(headers('1.5'), 0)).toBe(1500);
    expect(retryAfter(headers('Thu, 01 Jan 1970 00:00:10 GMT'), 4000)).toBe(6000);
    expect(retryAfter(headers('soon'), 0)).toBeNull();
    expect(retryAfter(new Headers(), 0)).toBeNull();
  });
});

describe('a signature', () => {
  test('is compared as a whole', () => {
    const made = hmacSha256('secret', ['a', Buffer.from('b')], 'hex');
    expect(isSame(made, hmacSha256('secret', ['ab'], 'hex'))).toBe(true);
    expect(isSame(made, hmacSha256('secret', ['ba'], 'hex'))).toBe(false);
    expect(isSame('', made)).toBe(false);
  });

  test('is of now, or too old or from the future', () => {
    const now = 1_700_000_000_000;
    const fresh = (seconds: string | undefined) => isFresh(seconds, now);
    expect(['1700000000', '1699999701', '1700000299'].map(fresh)).toEqual([true, true, true]);
    expect(['1699999699', '1700000301', '', '-1', '1e9', undefined].map(fresh)).toEqual(Array(6).fill(false));
  });
});

test('a map of limited size forgets what was not used for the longest time, and says so', () => {
  const forgotten: string[] = [];
  const recent = new Recent<string>(2, (value) => forgotten.push(value));
  recent.set('a', 'one');
  recent.set('b', 'two');
  expect(recent.get('a')).toBe('one');
  recent.set('c', 'three');
  expect(forgotten).toEqual(['two']);
  expect(recent.entries()).toEqual([
    ['a', 'one'],
    ['c', 'three'],
  ]);
  expect([recent.has('b'), recent.delete('a'), recent.delete('a'), [...recent.values()]]).toEqual([
    ...[false, true, false],
    ['three'],
  ]);
});

test('secrets are taken out of a text, also as they stand in addresses', () => {
  const redact = redaction('to/ken', null, '');
  expect(redact('GET /to/ken?x=to%2Fken failed')).toBe('GET /<secret>?x=<secret> failed');
});

test('a text that grows when it is rendered is cut so that every part fits, and nothing of it is lost', () => {
  const text = Array.from({ length: 400 }, (_, line) => `line ${line} & more`).join('\n');
  const rendered = (part: string) => part.replaceAll('&', '&amp;').length * 2;
  const parts = splitText(text, { maxText: 500, counts: 'utf16', markdown: true, rendered });
  expect(parts.every((part) => rendered(part) <= 500)).toBe(true);
  const lines = parts.flatMap((part) => part.split('\n')).filter((line) => line !== '');
  expect(lines.map((line) => line.trim())).toEqual(text.split('\n'));
});
