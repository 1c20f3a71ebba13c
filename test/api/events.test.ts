import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { testInFullRun } from '../support/full-run.ts';
import { patience } from '../support/patience.ts';
import { chatConversation } from '../support/stores.ts';
import { apiFixture, ask, firstOf, listen, until } from './support/api-fixture.ts';

const fixture = apiFixture();
let chats = 0;

/** A session with a start and an end. */
async function live(): Promise<string> {
  const { id } = await fixture.engine.start(chatConversation(`e${++chats}`));
  await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
  return id;
}

const newest = () => fixture.engine.store.read('lastSeq', {});

describe('a page of the log', () => {
  test('is followed by `next`, and has what was just written', async () => {
    const after = await newest();
    const id = await live();
    const first = (await ask(fixture.api, `/v1/events?after=${after}&limit=1`)).json;
    expect(first.data).toMatchObject([{ type: 'session:start', session_id: id, seq: first.next }]);
    const second = (await ask(fixture.api, `/v1/events?after=${first.next}`)).json;
    expect(second.data).toMatchObject([{ type: 'session:end', session_id: id }]);
    const third = (await ask(fixture.api, `/v1/events?after=${second.next}`)).json;
    expect(third).toEqual({ data: [], next: second.next });
    expect((await ask(fixture.api, '/v1/events?after=now')).json).toEqual({ data: [], next: second.next });
  });

  test('is filtered by type and session, and goes past what was not wanted', async () => {
    const after = await newest();
    const [one, two] = [await live(), await live()];
    const ends = (await ask(fixture.api, `/v1/events?after=${after}&types=session:end`)).json;
    expect(ends.data.map((event: { session_id: string }) => event.session_id)).toEqual([one, two]);
    const none = (await ask(fixture.api, `/v1/events?after=${after}&types=agent:*,session:title`)).json;
    expect(none).toEqual({ data: [], next: await newest() });
    const ofTwo = (await ask(fixture.api, `/v1/events?session=${two}`)).json;
    expect(ofTwo.data.map(({ type }: { type: string }) => type)).toEqual(['session:start', 'session:end']);
    expect((await ask(fixture.api, `/v1/sessions/${two}/events`)).json.data).toEqual(ofTwo.data);
  });

  test.each([
    ['after=-1', 'bad_input', 400],
    ['after=x', 'bad_input', 400],
    ['types=session:edn', 'unknown_event', 400],
    ['session=ses_nobody', 'session_not_found', 404],
    ['limit=1000', 'bad_input', 400],
  ])('refuses %s', async (query, code, status) => {
    const answer = await ask(fixture.api, `/v1/events?${query}`);
    expect([answer.status, answer.json.error.code]).toEqual([status, code]);
  });
});

describe('the stream of the log', () => {
  test('begins where it is asked to and goes on with what happens', async () => {
    const after = await newest();
    const before = await live();
    const stream = listen(fixture.api, `/v1/events?after=${after}`);
    const [start, end] = [(await stream.next()).value, (await stream.next()).value];
    expect([start.data.session_id, end.data.session_id]).toEqual([before, before]);
    expect(Number(start.id)).toBe(start.data.seq);
    const later = await live();
    expect((await stream.next()).value.data).toMatchObject({ type: 'session:start', session_id: later });
    await stream.return(undefined);
  });

  test('resumes after a cut connection without a gap and without a repeat', async () => {
    const after = await newest();
    const ids: string[] = [];
    const talking = (async () => {
      for (let i = 0; i < 40; i++) ids.push(await live());
    })();
    const seen: { seq: number; session_id: string }[] = [];
    let last = String(after);
    // The address says where to begin; what was seen since is newer, and wins.
    const path = `/v1/events?after=${after}`;
    while (seen.length < 80) {
      const some = await firstOf(listen(fixture.api, path, { headers: { 'last-event-id': last } }), 7);
      seen.push(...some.map(({ data }) => data).slice(0, 80 - seen.length));
      last = some.at(-1)?.id ?? last;
      if (80 - seen.length < 7) break;
    }
    await talking;
    const rest = await firstOf(listen(fixture.api, `/v1/events?after=${last}`), 80 - seen.length);
    seen.push(...rest.map(({ data }) => data));
    const all = (await ask(fixture.api, `/v1/events?after=${after}&limit=500`)).json.data;
    expect(seen.map(({ seq }) => seq)).toEqual(all.map(({ seq }: { seq: number }) => seq));
    expect(ids).toHaveLength(40);
  });

  test('catches up over many pages, by itself and beside what happens', async () => {
    const after = await newest();
    for (let i = 0; i < 650; i++) await live();
    const stream = listen(fixture.api, `/v1/events?after=${after}`);
    const talking = (async () => {
      for (let i = 0; i < 50; i++) await live();
    })();
    const seen = (await firstOf(stream, 1400)).map(({ data }) => data.seq);
    await talking;
    expect(new Set(seen).size).toBe(1400);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toBe(await newest());
  });

  test('gives a client that comes back all it has missed, however much that is', async () => {
    const before = listen(fixture.api, '/v1/events?after=now');
    const first = before.next();
    await until('it listens', async () => (await ask(fixture.api, '/metrics')).text.includes('_followers 1\n'));
    const after = await newest();
    const { id } = await fixture.engine.start(chatConversation(`e${++chats}`));
    expect((await first).value.data.session_id).toBe(id);
    // More than may wait for a client that does not read.
    for (let i = 0; i < 60; i++) await fixture.engine.setTitle(id, `${i} ${'x'.repeat(100_000)}`);
    const seen = await firstOf(listen(fixture.api, `/v1/events?after=${after}`), 61);
    expect(seen.at(-1)?.data.title).toContain('59 ');
    // The first one did not read, and may have been cut off for it.
    await before.return(undefined).catch(() => undefined);
  });

  test('keeps a client that reads, also when more comes at once than waits for anybody', async () => {
    const stream = listen(fixture.api, '/v1/events?after=now');
    const first = stream.next();
    await until('it listens', async () => (await ask(fixture.api, '/metrics')).text.includes('_followers 1\n'));
    const { id } = await fixture.engine.start(chatConversation(`e${++chats}`));
    expect((await first).value.data.session_id).toBe(id);
    // At once: they are one page of the log.
    const titles = Array.from({ length: 120 }, (_, i) => `${i} ${'x'.repeat(100_000)}`);
    await Promise.all(titles.map((title) => fixture.engine.setTitle(id, title)));
    const seen: unknown[] = [];
    while (seen.length < titles.length) seen.push(Number.parseInt((await stream.next()).value.data.title, 10));
    expect(seen.toSorted((a, b) => Number(a) - Number(b))).toEqual(titles.map((_, i) => i));
    await stream.return(undefined);
  });

  test('is filtered as a page is', async () => {
    const after = await newest();
    const one = await live();
    const stream = listen(fixture.api, `/v1/events?after=${after}&types=session:end,command:*`);
    expect((await stream.next()).value.data).toMatchObject({ type: 'session:end', session_id: one });
    const two = await live();
    expect((await stream.next()).value.data).toMatchObject({ type: 'session:end', session_id: two });
    await stream.return(undefined);
  });

  test('costs one reader of the log, however many listen', async () => {
    const reads: string[] = [];
    const { store } = fixture.engine;
    const read = store.read.bind(store);
    store.read = ((name: 'lastSeq', args: Record<never, never>) => {
      reads.push(name);
      return read(name, args);
    }) as typeof store.read;
    try {
      const streams = Array.from({ length: 100 }, () => listen(fixture.api, '/v1/events?after=now'));
      const firsts = streams.map((stream) => stream.next());
      await until('all listen', async () => (await ask(fixture.api, '/metrics')).text.includes('_followers 100'));
      reads.length = 0;
      const id = await live();
      for (const first of await Promise.all(firsts)) expect(first.value.data.session_id).toBe(id);
      expect(reads.length).toBeLessThan(60);
      await Promise.all(streams.map((stream) => stream.return(undefined)));
    } finally {
      store.read = read;
    }
  });

  testInFullRun('drops a client that does not read, and keeps the others', async () => {
    const { hostname, port } = new URL(fixture.api.url);
    const deaf = connect(Number(port), hostname);
    deaf.on('error', () => undefined); // It is dropped: that is what the test is about.
    deaf.write(`GET /v1/events?after=now HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`);
    await new Promise((next) => deaf.once('readable', next));
    deaf.pause();
    const attentive = listen(fixture.api, '/v1/events?after=now&types=session:end');
    const first = attentive.next();
    const title = 'x'.repeat(100_000);
    const { id } = await fixture.engine.start(chatConversation(`e${++chats}`));
    await until(
      'the deaf one is dropped',
      async () => {
        await fixture.engine.setTitle(id, title);
        return (await ask(fixture.api, '/metrics')).text.includes('_followers 1\n');
      },
      25_000,
    );
    await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    expect((await first).value.data.session_id).toBe(id);
    await attentive.return(undefined);
    deaf.destroy();
  });

  test('ends when the port closes, and the port closes soon', async () => {
    const stream = listen(fixture.api, '/v1/events?after=now');
    const ended = stream.next();
    await new Promise((next) => setTimeout(next, 100));
    const began = performance.now();
    await fixture.api.close();
    expect((await ended).done).toBe(true);
    expect(performance.now() - began).toBeLessThan(patience(2000));
  });

  test('refuses a place to resume from that is none', async () => {
    const headers = { accept: 'text/event-stream', 'last-event-id': 'x' };
    expect((await ask(fixture.api, '/v1/events', { headers })).status).toBe(400);
  });
});
