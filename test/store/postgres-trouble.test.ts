import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { codeOf } from './contract/code-of.ts';
import { Scene } from './contract/scene.ts';
import { DEADLINES, LONG_TRIES, TroubledDatabase } from './troubled-database.ts';

// A real server behind a network that the test troubles: what the store says of each write, and that it recovers by itself.

const troubled = TroubledDatabase.forThisFile();

const beat = (scene: Scene): Promise<void> => scene.store.write('beat', { instance: scene.instance, ttlMs: 90_000 });

test('a commit whose answer is lost is repeated and applied once', async () => {
  const scene = await troubled.scene();
  const lost = troubled.proxy.troubleNextCommit('cut-after');
  const { session } = await scene.ask('lost');
  await lost;
  expect(await scene.types(session.id)).toEqual(['session:start', 'agent:start']);
  await scene.opened.close();
});

test('a commit that is never answered is repeated after its deadline and applied once', async () => {
  const scene = await troubled.scene();
  const lost = troubled.proxy.troubleNextCommit('silent-after');
  const { session } = await scene.ask('silent');
  await lost;
  expect(await scene.types(session.id)).toEqual(['session:start', 'agent:start']);
  await scene.opened.close();
});

test.each(['cut-before', 'cut-after'] as const)(
  'a commit without an answer is of unknown outcome while the server is away (%s)',
  async (trouble) => {
    const scene = await troubled.scene();
    const context = scene.context();
    const say = () => scene.say(`away-${trouble}`, 'hello', { context, turnId: `turn-${trouble}`, originRef: trouble });
    const lost = troubled.proxy.troubleNextCommit(trouble).then(() => troubled.proxy.refuse());
    expect(await codeOf(say())).toBe('store_outcome_unknown');
    await lost;
    await troubled.proxy.restore();
    const again = await say();
    expect(await scene.types(again.session.id)).toEqual(['session:start']);
    await scene.opened.close();
  },
);

test('a write that did not come as far as its commit is not done, and says that the server is away', async () => {
  const scene = await troubled.scene();
  await troubled.proxy.refuse();
  expect(await codeOf(scene.say('refused', 'hello'))).toBe('store_unreachable');
  await troubled.proxy.restore();
  const key = scene.conversation('refused').key;
  expect(await scene.store.read('openSession', { key })).toBeNull();
  await scene.opened.close();
});

test('through a silent network nothing waits longer than its deadline, and the store works again by itself', {
  timeout: 6 * DEADLINES.totalMs,
}, async () => {
  const scene = await troubled.scene();
  await scene.start('before');
  await beat(scene);
  troubled.proxy.silence();
  const began = performance.now();
  const refusals = await Promise.all([
    codeOf(beat(scene)),
    codeOf(scene.store.read('lastSeq', {})),
    ...Array.from({ length: 30 }, (_, i) => codeOf(scene.say(`silent-${i}`, 'hello'))),
  ]);
  expect(new Set(refusals).difference(new Set(['store_unreachable', 'store_timeout']))).toEqual(new Set());
  expect(performance.now() - began).toBeLessThan(4 * DEADLINES.totalMs);
  await troubled.proxy.restore();
  await beat(scene);
  await scene.start('after');
  await scene.opened.close();
});

test('a heartbeat that a silent network swallows is refused after its deadline', { timeout: 10_000 }, async () => {
  const scene = await troubled.scene();
  await beat(scene);
  troubled.proxy.silence();
  expect(await codeOf(beat(scene))).toBe('store_unreachable');
  await troubled.proxy.restore();
  await beat(scene);
  await scene.opened.close();
});

test('a store is not opened through a silent network, and says so', { timeout: 15_000 }, async () => {
  troubled.proxy.silence();
  expect(await codeOf(troubled.scene())).toBe('store_unreachable');
});

test.each(['server_version_num', 'pg_backend_pid', 'to_regclass'])(
  'a store that is being opened when the network goes silent says so (at %s)',
  { timeout: 15_000 },
  async (words) => {
    troubled.proxy.silenceAt(words);
    expect(await codeOf(troubled.scene())).toBe('store_unreachable');
  },
);

test('writes that wait for one conversation leave the connections to others', async () => {
  const scene = await troubled.scene({ deadlines: LONG_TRIES });
  const { key } = scene.conversation('held');
  const release = await troubled.hold(key);
  const order: number[] = [];
  const waiting = Array.from({ length: 40 }, (_, i) =>
    scene.say('held', String(i)).then(() => {
      order.push(i);
    }),
  );
  await troubled.untilWaiting(1);
  await beat(scene);
  await scene.say('other', 'hello');
  expect(await scene.store.read('openSession', { key })).toBeNull();
  expect(order).toEqual([]);
  await release();
  await Promise.all(waiting);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  await scene.opened.close();
});

test('writes that wait for many conversations leave heartbeats and reads alone', async () => {
  const scene = await troubled.scene({ deadlines: LONG_TRIES });
  const chats = Array.from({ length: 40 }, (_, i) => `held-${i}`);
  const release = await troubled.hold(...chats.map((chat) => scene.conversation(chat).key));
  const waiting = chats.map((chat) => scene.say(chat, 'hello'));
  await troubled.untilWaiting(10);
  await beat(scene);
  await scene.store.read('lastSeq', {});
  await release();
  await Promise.all(waiting);
  await scene.opened.close();
});

test('a heartbeat does not wait for a session that is locked', async () => {
  const scene = await troubled.scene();
  const { session } = await scene.ask('locked');
  const holder = await troubled.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT id FROM sessions WHERE id = $1 FOR UPDATE', [session.id]);
  await beat(scene);
  await holder.end();
  await scene.opened.close();
});

test('a conversation that stays locked is refused as locked, its waiting writes too', async () => {
  const scene = await troubled.scene({ deadlines: { tryMs: 4000, totalMs: 9000 } });
  const release = await troubled.hold(scene.conversation('locked-for-long').key);
  const codes = await Promise.all(Array.from({ length: 5 }, (_, i) => codeOf(scene.say('locked-for-long', String(i)))));
  expect(new Set(codes)).toEqual(new Set(['store_locked']));
  await release();
  await scene.say('locked-for-long', 'now');
  await scene.opened.close();
});

test('a statement that is cancelled is refused as too slow', async () => {
  const scene = await troubled.scene();
  const release = await troubled.hold(scene.conversation('cancelled').key);
  const said = codeOf(scene.say('cancelled', 'hello'));
  await troubled.untilWaiting(1);
  await troubled.outside.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`);
  expect(await said).toBe('store_timeout');
  await release();
  await scene.opened.close();
});

/** Another instance, past the proxy, that leaves work for others to do until the listener has heard of it. */
async function untilHeard(heard: () => boolean): Promise<void> {
  const store = await PostgresStore.open(troubled.database.url, DEFAULT_RESET_RULES);
  store.onCommit(() => undefined);
  const other = new Scene({ ...(await troubled.scene()).opened, store });
  other.instance = 'other';
  await other.boot();
  while (!heard()) {
    await other.start(randomUUID());
    await sleep(100);
  }
  await store.close();
  await other.opened.close();
}

test('a notification that no store has sent is reported and ignored', { timeout: 20_000 }, async () => {
  const problems: unknown[] = [];
  const scene = await troubled.scene({ onProblem: (_, { payload }) => problems.push(payload) });
  let heard = 0;
  scene.store.onCommit(() => {
    heard++;
  });
  const foreign = ['no json', 'null', '[]', '"text"', '{}', '{"from":1,"queues":[]}', '{"from":"x","queues":{}}', ''];
  while (problems.length < foreign.length) {
    problems.length = 0;
    for (const payload of foreign) await troubled.outside.query("SELECT pg_notify('moirai', $1)", [payload]);
    await sleep(200);
  }
  expect(problems.slice(0, foreign.length)).toEqual(foreign);
  expect(heard).toBe(0);
  await untilHeard(() => heard > 0);
  await scene.opened.close();
});

test.each(['cut', 'silence'] as const)(
  'hints of others are heard again after the network was in trouble (%s)',
  async (trouble) => {
    const scene = await troubled.scene();
    let heard = 0;
    scene.store.onCommit(() => {
      heard++;
    });
    await untilHeard(() => heard > 0);
    troubled.proxy[trouble]();
    await codeOf(scene.store.read('lastSeq', {}));
    await troubled.proxy.restore();
    heard = 0;
    await untilHeard(() => heard > 0);
    await scene.opened.close();
  },
);
