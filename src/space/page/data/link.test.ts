import { signal } from '@preact/signals';
import { describe, expect, test } from 'vitest';
import { KeyRing } from './key-ring.ts';
import { backoff, follow } from './link.ts';
import { type Fetcher, makeSource } from './source.ts';
import { World } from './world.ts';

class Drawer {
  readonly #kept = new Map<string, string>();
  getItem(name: string): string | null {
    return this.#kept.get(name) ?? null;
  }
  setItem(name: string, value: string): void {
    this.#kept.set(name, value);
  }
  removeItem(name: string): void {
    this.#kept.delete(name);
  }
}

const frame = (event: string, data: unknown): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

function streamOf(...chunks: string[]): Response {
  const body = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Follows a source that answers like this, one answer after the other; after the last one it stops. */
async function run(answers: ((init: RequestInit) => Response | Promise<Response>)[], streaming = signal(true)) {
  const stop = new AbortController();
  const asked: Headers[] = [];
  const paths: string[] = [];
  const pauses: number[] = [];
  const world = new World({ frame: (show) => queueMicrotask(show), now: Date.now });
  const ring = new KeyRing(new Drawer(), new Drawer());
  const fetcher: Fetcher = async (url, init = {}) => {
    const answer = answers[asked.length];
    paths.push(url);
    asked.push(new Headers(init.headers));
    if (answer === undefined) {
      stop.abort();
      throw new TypeError('over');
    }
    return answer(init);
  };
  const source = makeSource({ name: 'a', base: '' }, ring, fetcher);
  world.add(source);
  const vanished: string[] = [];
  const pause = async (ms: number): Promise<void> => {
    pauses.push(ms);
  };
  await follow(
    source,
    {
      world,
      ring,
      random: () => 1,
      pause,
      streaming,
      vanished: (_, gone) => vanished.push(...gone.map(({ id }) => id)),
    },
    stop.signal,
  );
  return { world, asked, paths, pauses, ring, vanished };
}

const snapshot = (seq: number, ...ids: string[]) => ({
  seq,
  gateways: [],
  sessions: ids.map((id) => ({ id })),
  totals: { open: 1, unowned: 0 },
});

describe('a link to a source', () => {
  test('goes on after the last number it has heard', async () => {
    const { asked, world } = await run([
      () => streamOf(frame('snapshot', snapshot(7, 's1')), frame('delta', { seq: 9, sessions: [{ id: 's2' }] })),
      () => streamOf(frame('delta', { seq: 11, removed: ['s1'] })),
    ]);
    expect(asked.map((headers) => headers.get('last-event-id'))).toEqual([null, '9', '11']);
    expect([...world.sessions.keys()]).toEqual(['s2']);
  });

  test('reads an event that comes in pieces, with line ends of any kind', async () => {
    const text = frame('snapshot', snapshot(1, 's1')).replaceAll('\n', '\r\n');
    const { world } = await run([() => streamOf(...text)]);
    expect([...world.sessions.keys()]).toEqual(['s1']);
  });

  test('asks again and again when there is no stream, and names what it knows', async () => {
    const json = (seq: number, ...ids: string[]) =>
      Response.json(snapshot(seq, ...ids), { headers: { etag: `"${seq}"` } });
    const { asked, world, vanished } = await run([
      () => new Response('', { status: 404 }),
      () => json(1, 's1', 's2'),
      () => new Response(null, { status: 304 }),
      () => json(2, 's2'),
    ]);
    expect(asked.slice(1, 4).map((headers) => headers.get('if-none-match'))).toEqual([null, '"1"', '"1"']);
    expect([...world.sessions.keys()]).toEqual(['s2']);
    expect(vanished).toEqual(['s1']);
    expect(world.sources[0]?.odd).toContain('no stream');
  });

  test('asks only for what has changed where it may not hold a stream, and hears of ends', async () => {
    const ended = [{ id: 's1', reason: 'idle_expiry', cause: 'idle', at: '2026-01-01T00:00:00Z' }];
    const { paths, world } = await run(
      [
        () => Response.json(snapshot(4, 's1', 's2')),
        () => Response.json({ seq: 6, sessions: [], ended, removed: [], gateways: null }),
      ],
      signal(false),
    );
    const path = '/v1/space/activity';
    expect(paths.slice(0, 3)).toEqual([path, `${path}?after=4`, `${path}?after=6`]);
    expect([...world.sessions.keys()]).toEqual(['s2']);
    expect(world.ends).toMatchObject([{ id: 's1', reason: 'idle_expiry', view: { id: 's1' } }]);
  });

  test('takes JSON from a version that does not look at what is accepted', async () => {
    const { world } = await run([() => Response.json(snapshot(1, 's1'))]);
    expect([...world.sessions.keys()]).toEqual(['s1']);
  });

  test('says why a source is gone', async () => {
    const whyAfter = async (response: Response) => (await run([() => response])).world.sources[0]?.why;
    const error = (code: string) => ({ error: { code, message: 'm', hint: '' } });
    expect(await whyAfter(Response.json(error('gateway_unreachable'), { status: 502 }))).toBe(
      'the gateway cannot be reached',
    );
    expect(await whyAfter(Response.json(error('gateway_refused_key'), { status: 502 }))).toContain('refuses the key');
    expect(await whyAfter(streamOf('event: snapshot\ndata: {no json\n\n'))).toContain('does not understand');
  });

  test('waits longer each time, until it is heard', async () => {
    const failing = () => Promise.reject(new TypeError('no'));
    const { pauses } = await run([failing, failing, failing, () => streamOf(frame('snapshot', snapshot(1))), failing]);
    expect(pauses).toEqual([500, 1000, 2000, 500, 500]);
    expect([0, 1, 2, 3, 4, 9].map((attempt) => backoff(attempt, () => 1))).toEqual([500, 1000, 2000, 4000, 5000, 5000]);
    expect(backoff(0, () => 0)).toBeLessThan(500);
  });

  test('has the person asked for the key when it is refused', async () => {
    const refused = await run([() => Response.json({ error: { code: 'unauthorized' } }, { status: 401 })]);
    expect(refused.ring.asking.value).toEqual({ why: 'missing' });
    expect(refused.world.sources[0]?.why).toBe('it refuses the key');
    const again = await run([() => Response.json({}, { status: 429, headers: { 'retry-after': '30' } })]);
    expect(again.ring.asking.value).toEqual({ why: 'missing' });
    expect(again.pauses).toEqual([30_000]);
  });
});

describe('a link that may hold no stream', () => {
  test('asks for JSON, is not called another version for it, and goes over to a stream when it may', async () => {
    const streaming = signal(false);
    const { asked, world } = await run(
      [
        () => Response.json(snapshot(1, 's1')),
        () => {
          streaming.value = true;
          return Response.json(snapshot(2, 's1', 's2'));
        },
        () => streamOf(frame('delta', { seq: 3, sessions: [{ id: 's3' }] })),
      ],
      streaming,
    );
    expect(asked.map((headers) => headers.get('accept')).slice(0, 3)).toEqual([
      ...['application/json', 'application/json', 'text/event-stream'],
    ]);
    expect([...world.sessions.keys()]).toContain('s3');
    expect(world.sources[0]?.odd).toBeNull();
  });
});

describe('the key ring', () => {
  test('keeps a key for the session, or for longer when it is asked to', () => {
    const [session, lasting] = [new Drawer(), new Drawer()];
    const ring = new KeyRing(session, lasting);
    ring.give('one', false);
    expect(new KeyRing(session, new Drawer()).headers()).toEqual({ authorization: 'Bearer one' });
    expect(new KeyRing(new Drawer(), lasting).headers()).toEqual({});
    ring.give('two', true);
    expect(new KeyRing(new Drawer(), lasting).headers()).toEqual({ authorization: 'Bearer two' });
    ring.forget();
    expect(new KeyRing(session, lasting).headers()).toEqual({});
  });

  test('sends letters of several bytes as these bytes', () => {
    const ring = new KeyRing(new Drawer(), new Drawer());
    ring.give('ключ', false);
    const header = ring.headers().authorization ?? '';
    const bytes = Uint8Array.from(header, (letter) => letter.charCodeAt(0));
    expect(new TextDecoder().decode(bytes)).toBe('Bearer ключ');
  });

  test('takes no notice of an answer to a key that was given up since', () => {
    const ring = new KeyRing(new Drawer(), new Drawer());
    ring.give('old', false);
    const old = ring.headers();
    ring.give('new', false);
    ring.refused(old);
    expect(ring.asking.value).toBeNull();
    ring.refused(ring.headers());
    expect(ring.asking.value).toEqual({ why: 'wrong' });
  });
});
