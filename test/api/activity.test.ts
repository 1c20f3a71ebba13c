import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type RunningApi, startApi } from '../../src/api/server.ts';
import { chatConversation } from '../support/stores.ts';
import { apiFixture, ask, listen } from './support/api-fixture.ts';

const fixture = apiFixture();

afterEach(() => vi.restoreAllMocks());

interface View {
  readonly id: string;
  readonly phase: string;
}

interface Seen {
  readonly seq: number;
  readonly gateways: unknown;
  readonly totals: { readonly open: number; readonly unowned: number };
  readonly sessions: readonly View[];
}

async function look(api: RunningApi): Promise<Seen> {
  const { json } = await ask(api, '/v1/space/activity');
  return { ...json, sessions: json.sessions.sort(byId) };
}

function byId(a: View, b: View): number {
  return a.id < b.id ? -1 : 1;
}

/** As somebody sees it who looks for the first time. */
async function freshLook(): Promise<Seen> {
  const api = await startApi({
    ...{ host: '127.0.0.1', port: 0, apiKey: null, allowedOrigins: [], version: '0.0.0-test' },
    ...{ backend: fixture.backend, engine: fixture.engine },
  });
  try {
    return await look(api);
  } finally {
    await api.close();
  }
}

type Step = (chat: string) => Promise<unknown>;

/** Whatever can happen to a conversation; what is not possible just now does nothing. */
const STEPS: Readonly<Record<string, Step>> = {
  start: (chat) => fixture.engine.start(chatConversation(chat)),
  begin: (chat) =>
    fixture.engine.receive({ conversation: chatConversation(chat), text: 'hello', originRef: null, by: 'user' }),
  wait: (chat) =>
    fixture.engine.receive({
      conversation: chatConversation(chat),
      text: 'wait',
      originRef: null,
      by: 'user',
      begin: false,
    }),
  reset: (chat) => fixture.engine.reset(chatConversation(chat)),
  async finish(chat) {
    const session = await open(chat);
    const [running] =
      session === null ? [] : await fixture.opened.store.read('openTurns', { sessionId: session.id, limit: 9 });
    if (session === null || running === undefined) return;
    await fixture.engine.finish({ sessionId: session.id, epoch: session.epoch }, running.id, {
      ...{ outcome: 'done', response: 'heard', model: null, usage: { input: 3, output: 5 } },
      messages: [{ role: 'assistant', text: 'heard', turnId: running.id }],
    });
  },
  async end(chat) {
    const session = await open(chat);
    if (session !== null) await fixture.engine.end(session.id, { reason: 'admin_close', trigger: 'api' });
  },
  async cut(chat) {
    const session = await open(chat);
    if (session !== null) await fixture.engine.interrupt({ sessionId: session.id, epoch: session.epoch }, 'restart');
  },
  async park(chat) {
    const session = await open(chat);
    if (session !== null) await fixture.engine.suspend(session.id);
  },
  async title(chat) {
    const session = await open(chat);
    if (session !== null) await fixture.engine.setTitle(session.id, `called ${Math.random()}`);
  },
  beat: () => fixture.engine.beat(),
};

function open(chat: string) {
  return fixture.opened.store.read('openSession', { key: chatConversation(chat).key });
}

const history = fc.array(
  fc.record({ step: fc.constantFrom(...Object.keys(STEPS)), chat: fc.integer({ min: 1, max: 6 }) }),
  { minLength: 5, maxLength: 60 },
);

async function run(steps: readonly { readonly step: string; readonly chat: number }[]): Promise<void> {
  // What is not possible is refused; the board must not mind.
  for (const { step, chat } of steps) await STEPS[step]?.(`b${chat}`).catch(() => undefined);
}

describe('the activity', () => {
  test('is after any history what somebody sees who looks for the first time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(history, { minLength: 1, maxLength: 4 }), async (parts) => {
        for (const steps of parts) {
          await run(steps);
          const seen = await look(fixture.api);
          const fresh = await freshLook();
          expect(seen).toEqual(fresh);
        }
      }),
      { numRuns: 25 },
    );
  });

  test('finds out by itself what no event tells of', async () => {
    const session = await fixture.engine.start(chatConversation('quiet'));
    await look(fixture.api);
    await fixture.engine.appendBeside(session.id, [{ role: 'user', text: 'by the way', turnId: null }]);
    const expected = (await freshLook()).sessions;
    expect((await look(fixture.api)).sessions).not.toEqual(expected);
    // It compares itself with the store only now and then.
    const later = performance.now() + 60_000;
    vi.spyOn(performance, 'now').mockReturnValue(later);
    expect((await look(fixture.api)).sessions).toEqual(expected);
  });

  test('can be followed: who applies the changes has the whole, also after being cut off', async () => {
    const world = new World();
    for (let round = 0; round < 6; round++) {
      const stream = listen(fixture.api, '/v1/space/activity', {
        headers: world.seq === null ? {} : { 'last-event-id': String(world.seq) },
      });
      const first = (await stream.next()).value;
      // What it knows from before is enough: nobody is sent everything twice.
      expect(first.event).toBe(round === 0 ? 'snapshot' : 'delta');
      world.apply(first);
      const [steps] = fc.sample(history, { numRuns: 1, seed: round + 1 });
      const running = run(steps ?? []);
      // The client leaves somewhere in between, and what happens then is made good when it comes back.
      await Promise.race([running, new Promise((leave) => setTimeout(leave, 20 * round))]);
      if (round > 2) world.apply((await stream.next()).value);
      await stream.return(undefined);
      await running;
    }
    const stream = listen(fixture.api, '/v1/space/activity', { headers: { 'last-event-id': String(world.seq) } });
    world.apply((await stream.next()).value);
    await stream.return(undefined);
    expect([...world.sessions.values()].sort(byId)).toEqual((await look(fixture.api)).sessions);
  });

  test('says why a session ended, and begins anew for a cursor it does not know', async () => {
    const stream = listen(fixture.api, '/v1/space/activity');
    await stream.next();
    const { id } = await fixture.engine.start(chatConversation('farewell'));
    expect((await stream.next()).value.data.sessions).toMatchObject([{ id, phase: 'idle' }]);
    await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const { event, data } = (await stream.next()).value;
    expect([event, data.ended]).toMatchObject(['delta', [{ id, reason: 'admin_close', cause: null }]]);
    await stream.return(undefined);
    const asked = await ask(fixture.api, `/v1/space/activity?after=${data.seq - 1}`);
    expect(asked.json).toMatchObject({ ended: [{ id, reason: 'admin_close' }], sessions: [] });
    expect((await ask(fixture.api, '/v1/space/activity?after=999999999')).json).not.toHaveProperty('ended');
    const strange = listen(fixture.api, '/v1/space/activity?after=999999999');
    expect((await strange.next()).value.event).toBe('snapshot');
    await strange.return(undefined);
  });

  test('does not tell a client of an end that its snapshot already left out', async () => {
    await look(fixture.api);
    const first = await fixture.engine.start(chatConversation('ended unseen'));
    await fixture.engine.end(first.id, { reason: 'admin_close', trigger: 'api' });
    const second = await fixture.engine.start(chatConversation('started after that'));
    const { seq } = await look(fixture.api);
    const { json } = await ask(fixture.api, `/v1/space/activity?after=${seq}`);
    expect(json.ended).toEqual([]);
    await fixture.engine.end(second.id, { reason: 'admin_close', trigger: 'api' });
    const later = await ask(fixture.api, `/v1/space/activity?after=${seq}`);
    expect(later.json.ended).toMatchObject([{ id: second.id }]);
  });

  test('tells many watchers, one of whom does not read, without delay for the others', async () => {
    const deaf = await fetch(new URL('/v1/space/activity', fixture.api.url), {
      headers: { accept: 'text/event-stream' },
    });
    const streams = Array.from({ length: 20 }, () => listen(fixture.api, '/v1/space/activity'));
    for (const stream of streams) await stream.next();
    const { id } = await fixture.engine.start(chatConversation('many'));
    for (const stream of streams) {
      expect((await stream.next()).value.data.sessions).toMatchObject([{ id }]);
      await stream.return(undefined);
    }
    await deaf.body?.cancel();
  });
});

/** What a page keeps. */
class World {
  seq: number | null = null;
  sessions = new Map<string, View>();

  apply({
    event,
    data,
  }: {
    event: string | null;
    data: Seen & { ended?: { id: string }[]; removed?: string[] };
  }): void {
    if (event === 'snapshot') this.sessions.clear();
    for (const { id } of data.ended ?? []) this.sessions.delete(id);
    for (const id of data.removed ?? []) this.sessions.delete(id);
    for (const session of data.sessions) this.sessions.set(session.id, session);
    this.seq = data.seq;
  }
}

describe('the timeline', () => {
  test('counts what began and ended', async () => {
    const { id } = await fixture.engine.start(chatConversation('counted'));
    await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const { json } = await ask(fixture.api, '/v1/space/timeline?from=1h&step=3600');
    expect(json.step).toBe(3600);
    expect(json.started[0]).toBeGreaterThan(0);
    expect(json.ended.admin_close[0]).toBeGreaterThan(0);
    expect(json.started).toHaveLength(1);
  });

  test.each([
    ['from=1h&to=2h', 'from is before to'],
    ['from=24h&step=1', '86400 steps are too many'],
    ['from=yesterday', 'not "yesterday"'],
    ['step=0', 'step'],
  ])('refuses %s', async (query, problem) => {
    const { status, json } = await ask(fixture.api, `/v1/space/timeline?${query}`);
    expect([status, json.error.code]).toEqual([400, 'bad_input']);
    expect(json.error.message).toContain(problem);
  });
});
