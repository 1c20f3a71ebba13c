import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type RunningApi, startApi } from '../../src/api/server.ts';
import { chatParty } from '../support/stores.ts';
import { ask, houseTests, listen } from './support/house.ts';

const house = houseTests();

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
    ...{ desk: house.desk, engine: house.engine },
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
  start: (chat) => house.engine.start(chatParty(chat)),
  begin: (chat) => house.engine.receive({ party: chatParty(chat), text: 'hello', originRef: null, by: 'user' }),
  wait: (chat) =>
    house.engine.receive({ party: chatParty(chat), text: 'wait', originRef: null, by: 'user', begin: false }),
  reset: (chat) => house.engine.reset(chatParty(chat)),
  async finish(chat) {
    const session = await open(chat);
    const [running] = session === null ? [] : await house.opened.store.read('openTurns', { sessionId: session.id });
    if (session === null || running === undefined) return;
    await house.engine.finish({ sessionId: session.id, epoch: session.epoch }, running.id, {
      ...{ outcome: 'done', response: 'heard', model: null, usage: { input: 3, output: 5 } },
      messages: [{ role: 'assistant', text: 'heard', turnId: running.id }],
    });
  },
  async end(chat) {
    const session = await open(chat);
    if (session !== null) await house.engine.end(session.id, { reason: 'admin_close', trigger: 'api' });
  },
  async cut(chat) {
    const session = await open(chat);
    if (session !== null) await house.engine.interrupt({ sessionId: session.id, epoch: session.epoch }, 'restart');
  },
  async park(chat) {
    const session = await open(chat);
    if (session !== null) await house.engine.suspend(session.id);
  },
  async title(chat) {
    const session = await open(chat);
    if (session !== null) await house.engine.setTitle(session.id, `called ${Math.random()}`);
  },
  beat: () => house.engine.beat(),
};

function open(chat: string) {
  return house.opened.store.read('openSession', { key: chatParty(chat).key });
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
          const seen = await look(house.api);
          const fresh = await freshLook();
          expect(seen).toEqual(fresh);
        }
      }),
      { numRuns: 25 },
    );
  });

  test('finds out by itself what no event tells of', async () => {
    const session = await house.engine.start(chatParty('quiet'));
    await look(house.api);
    await house.engine.appendBeside(session.id, [{ role: 'user', text: 'by the way', turnId: null }]);
    const expected = (await freshLook()).sessions;
    expect((await look(house.api)).sessions).not.toEqual(expected);
    // It compares itself with the store only now and then.
    const later = performance.now() + 60_000;
    vi.spyOn(performance, 'now').mockReturnValue(later);
    expect((await look(house.api)).sessions).toEqual(expected);
  });

  test('can be followed: who applies the changes has the whole, also after being cut off', async () => {
    const world = new World();
    for (let round = 0; round < 6; round++) {
      const stream = listen(house.api, '/v1/space/activity', {
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
    const stream = listen(house.api, '/v1/space/activity', { headers: { 'last-event-id': String(world.seq) } });
    world.apply((await stream.next()).value);
    await stream.return(undefined);
    expect([...world.sessions.values()].sort(byId)).toEqual((await look(house.api)).sessions);
  });

  test('says why a session ended, and begins anew for a cursor it does not know', async () => {
    const stream = listen(house.api, '/v1/space/activity');
    await stream.next();
    const { id } = await house.engine.start(chatParty('farewell'));
    expect((await stream.next()).value.data.sessions).toMatchObject([{ id, phase: 'idle' }]);
    await house.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const { event, data } = (await stream.next()).value;
    expect([event, data.ended]).toMatchObject(['delta', [{ id, reason: 'admin_close', cause: null }]]);
    await stream.return(undefined);
    const asked = await ask(house.api, `/v1/space/activity?after=${data.seq - 1}`);
    expect(asked.json).toMatchObject({ ended: [{ id, reason: 'admin_close' }], sessions: [] });
    expect((await ask(house.api, '/v1/space/activity?after=999999999')).json).not.toHaveProperty('ended');
    const strange = listen(house.api, '/v1/space/activity?after=999999999');
    expect((await strange.next()).value.event).toBe('snapshot');
    await strange.return(undefined);
  });

  test('does not tell a client of an end that its snapshot already left out', async () => {
    await look(house.api);
    const first = await house.engine.start(chatParty('ended unseen'));
    await house.engine.end(first.id, { reason: 'admin_close', trigger: 'api' });
    const second = await house.engine.start(chatParty('started after that'));
    const { seq } = await look(house.api);
    const { json } = await ask(house.api, `/v1/space/activity?after=${seq}`);
    expect(json.ended).toEqual([]);
    await house.engine.end(second.id, { reason: 'admin_close', trigger: 'api' });
    const later = await ask(house.api, `/v1/space/activity?after=${seq}`);
    expect(later.json.ended).toMatchObject([{ id: second.id }]);
  });

  test('tells many watchers, one of whom does not read, without delay for the others', async () => {
    const deaf = await fetch(new URL('/v1/space/activity', house.api.url), {
      headers: { accept: 'text/event-stream' },
    });
    const streams = Array.from({ length: 20 }, () => listen(house.api, '/v1/space/activity'));
    for (const stream of streams) await stream.next();
    const { id } = await house.engine.start(chatParty('many'));
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
    const { id } = await house.engine.start(chatParty('counted'));
    await house.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const { json } = await ask(house.api, '/v1/space/timeline?from=1h&step=3600');
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
    const { status, json } = await ask(house.api, `/v1/space/timeline?${query}`);
    expect([status, json.error.code]).toEqual([400, 'bad_input']);
    expect(json.error.message).toContain(problem);
  });
});
