import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { MatrixApi } from '../../../src/platforms/matrix/api.ts';
import { GapReader } from '../../../src/platforms/matrix/gap.ts';
import { never, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { openMatrix } from './open-matrix.ts';
import { dmOf, personOf } from './world.ts';

const DM = dmOf(0);
const text = (body: string) => ({ msgtype: 'm.text', body });

describe('a gap', () => {
  test('of 1,000 events is fetched backwards, and taken in order, each once', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform, inbox } = await scene.begin();
    await world.say({ text: 'before' });
    await until(() => inbox.texts.length === 1, 'the first');
    await platform.stop();
    const texts = Array.from({ length: 1000 }, (_, index) => `behind ${index}`);
    for (const each of texts) world.add(DM, 0, text(each));
    const next = await scene.begin();
    await until(() => next.inbox.texts.length >= 1000, 'all of them');
    await world.say({ text: 'after' });
    await until(() => next.inbox.texts.includes('after'), 'the last');
    expect(next.inbox.texts.filter((each) => each !== 'before')).toEqual([...texts, 'after']);
    const questions = fake.callsOf('messages').map(({ query }) => query);
    expect(questions.every((query) => query.get('dir') === 'b' && query.get('to') !== null)).toBe(true);
  });

  test('in which the process is killed is read on where that had come to', async () => {
    await using scene = await openMatrix();
    const { world, fake, state } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    const texts = Array.from({ length: 400 }, (_, index) => `behind ${index}`);
    for (const each of texts) world.add(DM, 0, text(each));
    const { inbox, platform: killed } = await scene.begin();
    await until(() => inbox.texts.length >= 150, 'a part of them');
    const [kept, taken] = [new Map(state), inbox.texts.length];
    const asked = fake.callsOf('messages').length;
    await killed.stop();
    state.clear();
    for (const [key, value] of kept) state.set(key, value);
    const next = await scene.begin();
    await until(() => next.inbox.texts.includes('behind 399'), 'the last');
    const again = texts.indexOf(next.inbox.texts[0] ?? '');
    // What is brought again is known by its id; what was never brought would be lost.
    expect([again >= 0, again <= taken]).toEqual([true, true]);
    expect(next.inbox.texts).toEqual(texts.slice(again));
    expect(asked).toBeGreaterThan(0);
  });

  test('of any length is read with a few pages held: what was let go is asked for again', async () => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    for (let index = 0; index < 1000; index += 1) world.add(DM, 0, text('x'.repeat(30_000)));
    const { rooms } = fake;
    const api = new MatrixApi({ homeserver: fake.url, token: fake.token, runtime: testRuntime('matrix') });
    const gap = { room: DM, from: `t1_${rooms.room(DM).events.length}`, to: 't1_3', last: null, after: 0 };
    const reader = new GapReader({ ...gap, self: fake.self }, api, never);
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    let most = 0;
    const ids: unknown[] = [];
    for await (const events of reader.pages()) {
      ids.push(...events.map((event) => event.event_id));
      globalThis.gc?.();
      most = Math.max(most, process.memoryUsage().heapUsed - before);
    }
    expect(ids).toEqual(
      rooms
        .room(DM)
        .events.slice(3)
        .map(({ event_id }) => event_id),
    );
    const asked = fake.callsOf('messages').map(({ query }) => query.get('from'));
    expect(asked).toHaveLength(20 + 16);
    expect(new Set(asked).size).toBe(20);
    // All of it together is 30 MB of text.
    if (globalThis.gc !== undefined) expect(most).toBeLessThan(20_000_000);
  });

  test('that the server does not give any more is told, and what is behind it is taken', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { inbox } = await scene.begin();
    fake.failNext('messages', { html: 502 }, { status: 403, errcode: 'M_FORBIDDEN' });
    world.push({ rooms: { join: { [DM]: { timeline: { events: [], limited: true, prev_batch: 't1_2' } } } } });
    await world.say({ text: 'after' });
    await until(() => inbox.texts.includes('after'), 'what is behind it');
    expect(fake.callsOf('messages')).toHaveLength(2);
    expect(scene.warnings.join('\n')).toContain('was not given');
  });

  test('is read on where the token was not taken for a while', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    for (let index = 0; index < 120; index += 1) world.add(DM, 0, text(`behind ${index}`));
    const softLogout = { status: 401, errcode: 'M_UNKNOWN_TOKEN', more: { soft_logout: true } };
    fake.failNext('messages', softLogout, softLogout);
    const next = await scene.begin();
    await until(() => next.inbox.texts.includes('behind 119'), 'the last');
    expect(next.inbox.texts).toEqual(Array.from({ length: 120 }, (_, index) => `behind ${index}`));
  });

  test('that a server never gives, although it answers everything else, keeps nobody waiting for ever', async () => {
    await using scene = await openMatrix({ speed: 2000 });
    const { world, fake, state } = scene;
    const { inbox } = await scene.begin();
    const first = state.get('since');
    fake.failNext('messages', ...Array.from({ length: 200 }, () => ({ html: 502 })));
    world.push({ rooms: { join: { [DM]: { timeline: { events: [], limited: true, prev_batch: 't1_2' } } } } });
    await world.say({ text: 'after' });
    await until(() => inbox.texts.includes('after'), 'what is behind it');
    expect(fake.callsOf('messages').length).toBeGreaterThan(10);
    expect(scene.warnings.join('\n')).toContain('was not given');
    await until(() => state.get('since') !== first, 'the position');
  });

  test('ends where we came into the room: what was said before is not for us', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const room = '!new:example.org';
    fake.rooms.create(room, [personOf(0), personOf(1)], 'New');
    world.add(room, 0, text('before you came'));
    const { inbox } = await scene.begin();
    fake.cut();
    fake.rooms.member(room, fake.self, 'join', fake.self, 'leave');
    for (let index = 0; index < 80; index += 1) world.add(room, 0, text(`since you came ${index}`));
    await until(() => inbox.texts.includes('since you came 79'), 'the last');
    expect(inbox.texts).toEqual(Array.from({ length: 80 }, (_, index) => `since you came ${index}`));
    expect(inbox.events).toMatchObject([{ kind: 'added', place: { chat: room } }]);
  });
});

describe('a position that the server has forgotten', () => {
  test('is made up for in every room, also where nothing was ever said to us', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    for (const person of [0, 1]) world.add(dmOf(person), person, text('history'));
    const { platform, inbox } = await scene.begin();
    await world.say({ text: 'before', person: 0 });
    await until(() => inbox.texts.includes('before'), 'the first');
    await platform.stop();
    fake.rooms.generation += 1;
    for (const person of [0, 1]) {
      for (let index = 0; index < 60; index += 1) world.add(dmOf(person), person, text(`${person}: ${index}`));
    }
    const next = await scene.begin();
    await until(() => next.inbox.texts.length === 120, 'all of them');
    for (const person of [0, 1]) {
      const said = next.inbox.texts.filter((each) => each.startsWith(`${person}: `));
      expect(said).toEqual(Array.from({ length: 60 }, (_, index) => `${person}: ${index}`));
    }
    expect(next.inbox.texts).not.toContain('history');
  });

  test('is made up for without the event that was taken last, which may have been removed', async () => {
    await using scene = await openMatrix();
    const { world, fake, state } = scene;
    const { platform, inbox } = await scene.begin();
    await world.say({ text: 'before' });
    await until(() => inbox.texts.includes('before'), 'the first');
    await platform.stop();
    const now = Date.now();
    state.set(`mark:${DM}`, `${now} $removed`);
    fake.rooms.generation += 1;
    const old = { type: 'm.room.message', sender: personOf(0) };
    for (let index = 0; index < 60; index += 1) {
      fake.rooms.append(DM, { ...old, content: text(`new ${index}`), origin_server_ts: now + index });
    }
    const next = await scene.begin();
    await until(() => next.inbox.texts.includes('new 59'), 'the last');
    expect(next.inbox.texts).toEqual(Array.from({ length: 60 }, (_, index) => `new ${index}`));
  });
});

describe('the position', () => {
  test('is kept at the first start, before anything is said, and history is not taken', async () => {
    await using scene = await openMatrix();
    const { world, state } = scene;
    world.add(DM, 0, text('history'));
    const { platform, inbox } = await scene.begin();
    expect(state.get('since')).toMatch(/^s1_\d+$/);
    await platform.stop();
    await world.say({ text: 'while nobody was there' });
    const next = await scene.begin();
    await until(() => next.inbox.texts.length === 1, 'what was said meanwhile');
    expect([...inbox.texts, ...next.inbox.texts]).toEqual(['while nobody was there']);
  });

  test('waits for a room that is slow, and other rooms do not', async () => {
    await using scene = await openMatrix();
    const { world, state } = scene;
    const inbox = new TestInbox();
    const held = Promise.withResolvers<void>();
    const receive = inbox.receive.bind(inbox);
    inbox.receive = async (message) => {
      if (message.place.chat === DM) await held.promise;
      await receive(message);
    };
    const { platform } = await scene.begin(scene.make(), inbox);
    const first = state.get('since');
    await world.say({ text: 'slow' });
    for (let index = 0; index < 20; index += 1) {
      await world.say({ text: `quick ${index}`, person: 1 });
      await until(() => inbox.texts.includes(`quick ${index}`), 'the quick ones');
    }
    await sleep(50);
    expect(state.get('since')).toBe(first);
    held.resolve();
    await until(() => inbox.texts.includes('slow'), 'the slow one');
    await until(() => state.get('since') !== first, 'the position');
    await platform.stop();
    const next = await scene.begin();
    await world.say({ text: 'after' });
    await until(() => next.inbox.texts.includes('after'), 'the last');
    expect(next.inbox.texts).toEqual(['after']);
  });

  test('is not read far ahead of what the inbox has', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { inbox } = await scene.begin();
    const open = inbox.hold();
    for (let index = 0; index < 3000; index += 1) world.add(DM, 0, text(`message ${index}`));
    await until(() => inbox.tried.length > 0, 'the first try');
    for (let person = 1; person < 25; person += 1) await world.say({ text: 'hello', person });
    let syncs = -1;
    await until(() => {
      const before = syncs;
      syncs = fake.callsOf('sync').length;
      return before === syncs;
    }, 'no more questions');
    await sleep(100);
    expect(fake.callsOf('sync').length).toBeLessThan(80);
    open();
    await until(() => inbox.texts.includes('message 2999'), 'all of them', 30_000);
    const texts = inbox.texts.filter((each) => each.startsWith('message'));
    expect(texts).toEqual(Array.from({ length: 3000 }, (_, index) => `message ${index}`));
  });

  test('is asked from again in smaller pieces when an answer is too large', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    const large = 'x'.repeat(55_000);
    for (let person = 0; person < 8; person += 1) {
      for (let index = 0; index < 45; index += 1) world.add(dmOf(person), person, text(`${index} ${large}`));
    }
    const next = await scene.begin();
    await until(() => next.inbox.received.length === 8 * 45, 'all of them', 30_000);
    const numbers = next.inbox.received.filter(({ place }) => place.chat === DM).map((each) => each.text.split(' ')[0]);
    expect(numbers).toEqual(Array.from({ length: 45 }, (_, index) => String(index)));
    const limits = fake.callsOf('sync').map(({ query }) => JSON.parse(query.get('filter') ?? '').room.timeline.limit);
    expect(limits).toContain(5);
  });
});

describe('the connection', () => {
  test('waits as long as the server asks', async () => {
    await using scene = await openMatrix();
    const { fake } = scene;
    const { platform, inbox } = await scene.begin();
    const more = { retry_after_ms: 20_000 };
    fake.failNext('sync', { status: 429, errcode: 'M_LIMIT_EXCEEDED', more, headers: { 'retry-after': '30' } });
    const asked = fake.callsOf('sync').length;
    fake.cut();
    await until(() => fake.callsOf('sync').length > asked, 'the refused question');
    const refusedAt = performance.now();
    await until(() => fake.callsOf('sync').length > asked + 1, 'the next question');
    // Its time runs a hundred times as fast.
    expect(performance.now() - refusedAt).toBeGreaterThan(250);
    await until(() => platform.state.phase === 'connected', 'connected again');
    await scene.world.say({ text: 'still there?' });
    await until(() => inbox.texts.includes('still there?'), 'the message');
  });

  test('has failed when the token is not known any more, and says what to do', async () => {
    await using scene = await openMatrix();
    const { platform } = await scene.begin();
    const soft = { status: 401, errcode: 'M_UNKNOWN_TOKEN', more: { soft_logout: true } };
    scene.fake.failNext('sync', soft);
    scene.fake.cut();
    await until(() => platform.state.phase === 'failed', 'failed', 20_000);
    expect(platform.state.problem).toContain('access token');
    expect(platform.state.problem).toContain('Log in');
  });

  test('has failed when the token is that of another account than the configured one', async () => {
    await using scene = await openMatrix({ userId: '@somebody:example.org' });
    const platform = scene.make();
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'failed', 'failed');
    expect(platform.state.problem).toContain('@agent:example.org');
    await expect(platform.identify(never)).rejects.toMatchObject({ name: 'SendFailure', kind: 'forbidden' });
  });

  test('goes on when the server answers a sync without a position', async () => {
    await using scene = await openMatrix();
    const { platform, inbox } = await scene.begin();
    scene.fake.failNext('sync', { html: 200 }, { status: 200, errcode: '' });
    scene.fake.cut();
    await until(() => platform.state.phase === 'degraded', 'trouble');
    await scene.world.say({ text: 'hello' });
    await until(() => inbox.texts.includes('hello'), 'the message');
  });
});

test('a server that does not wait is not asked without a pause', async () => {
  await using scene = await openMatrix();
  const { fake, world } = scene;
  fake.isImpatient = true;
  const { inbox } = await scene.begin();
  const before = fake.callsOf('sync').length;
  await sleep(500);
  expect(fake.callsOf('sync').length - before).toBeLessThan(40);
  await world.say({ text: 'hello' });
  await until(() => inbox.texts.includes('hello'), 'the message');
});

test('a position that cannot be read is read again, and taken for no first start', async () => {
  await using scene = await openMatrix();
  const { world, state } = scene;
  const { platform } = await scene.begin();
  await platform.stop();
  await world.say({ text: 'while nobody was there' });
  const get = state.get.bind(state);
  let failures = 2;
  state.get = (key) => {
    if (key === 'since' && failures-- > 0) throw new RangeError('the store is away');
    return get(key);
  };
  const next = await scene.begin();
  await until(() => next.inbox.texts.includes('while nobody was there'), 'the message');
});

test('an event that a message refers to is asked for until the server is well', async () => {
  await using scene = await openMatrix();
  const { world, fake } = scene;
  const { inbox, platform } = await scene.begin();
  const { messageId } = await platform.send(world.place('group'), { text: 'our words' }, never);
  await platform.stop();
  fake.failNext('event', { html: 502 }, 'cut');
  const next = await scene.begin();
  await world.say({ text: 'right', where: 'group', repliesTo: messageId });
  await until(() => next.inbox.texts.includes('right'), 'the answer');
  const [answer] = next.inbox.received;
  expect(answer).toMatchObject({ addressed: true, repliesTo: { messageId, text: 'our words', own: true } });
  expect(inbox.texts).toEqual([]);
});
