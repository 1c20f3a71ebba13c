import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, expect } from 'vitest';
import { sceneTests } from './contract/scene.ts';
import { postgres } from './engines.ts';

// Two transactions at once, each stopped where it hurts: a row lock of the test's own holds one of them in the middle.

const engine = await postgres();
afterAll(engine.remove);
const test = sceneTests(engine.open);

test('a reaper that is late does not touch a session that somebody alive has taken since', async (scene) => {
  const dead = await scene.joinedBy('dead');
  const first = await dead.ask('1');
  const second = await dead.ask('2');
  const other = await scene.joinedBy('two');
  await dead.store.write('stopInstance', { instance: 'dead' });
  const release = await holdRow(first.session.id);
  const late = scene.reap();
  await untilWaiting();
  // The late reaper has listed both and stands at the first; another one settles the second, and its turn goes on.
  expect((await other.reap()).interrupted).toEqual([second.session.id]);
  const { session } = await other.begin(second.session.id, second.turn.id);
  await release();
  expect((await late).interrupted).toEqual([first.session.id]);
  expect(await scene.session(second.session.id)).toEqual(session);
  await other.finish({ session, turn: second.turn });
});

test('what an instance does not know of is left to the next look while somebody writes there', async (scene) => {
  const { session, turn } = await scene.ask('1');
  const other = await scene.joinedBy('two');
  const release = await holdRow(session.id);
  const noted = other.command(session.id, { name: 'note', command: 'status', args: '' });
  await untilWaiting();
  const sessions = [{ id: session.id, epoch: session.epoch, held: false }];
  const reconcile = () => scene.store.write('reconcile', { context: scene.context(), sessions, claims: [] });
  expect(await reconcile()).toEqual({ reaped: [], interrupted: [], released: [] });
  await release();
  await noted;
  expect(await reconcile()).toMatchObject({ interrupted: [session.id] });
  expect(await scene.session(session.id)).toMatchObject({ state: 'resume_pending', owner: null });
  expect(await scene.store.read('openTurns', { sessionId: session.id, limit: 9 })).toMatchObject([{ id: turn.id }]);
});

test('two reapers that find the same dead instance tell of it once', async (scene) => {
  const dead = await scene.joinedBy('dead');
  await dead.ask('1');
  const other = await scene.joinedBy('two');
  const release = await holdRow('dead', 'instances');
  const reaps = [scene.reap(['dead'])];
  await untilWaiting();
  reaps.push(other.reap(['dead']));
  await sleep(100);
  await release();
  const lost = (await Promise.all(reaps)).flatMap((reaped) => reaped.lost);
  expect(lost).toEqual(['dead']);
  expect(await scene.events(null, ['instance:lost'])).toMatchObject([{ instance: 'dead', sessions: 1 }]);
  expect(await scene.events(null, ['session:resume_pending'])).toHaveLength(1);
});

test('an instance in the middle of a write is not declared dead before the write is over', async (scene) => {
  const slow = await scene.joinedBy('slow');
  const { session, turn } = await scene.say('1', 'hello');
  const release = await holdRow(session.id);
  const begun = slow.begin(session.id, turn.id);
  await untilWaiting();
  expect((await scene.reap(['slow'])).lost).toEqual([]);
  await release();
  expect((await begun).session.owner).toBe('slow');
  expect(await scene.reap(['slow'])).toMatchObject({ lost: ['slow'], interrupted: [session.id] });
});

test('an instance that leaves waits for what it is still writing, and leaves it to the reaper', async (scene) => {
  const leaving = await scene.joinedBy('leaving');
  const { session, turn } = await scene.say('1', 'hello');
  const release = await holdRow(session.id);
  const begun = leaving.begin(session.id, turn.id);
  await untilWaiting();
  const stopped = leaving.store.write('stopInstance', { instance: 'leaving' });
  await sleep(100);
  await release();
  await Promise.all([begun, stopped]);
  expect((await scene.reap()).interrupted).toEqual([session.id]);
});

test('a removed subscriber gets no lane from a writer that still knew it', async (scene) => {
  await scene.subscribe('listener');
  const { id } = await scene.start('1');
  await scene.drain('listener');
  const release = await holdRow(id);
  const written = scene.command(id, { name: 'note', command: 'status', args: '' });
  await untilWaiting();
  const removed = scene.store.write('unsubscribe', { name: 'listener' });
  await sleep(100);
  await release();
  await Promise.all([written, removed]);
  expect(await scene.raw('SELECT * FROM lanes')).toEqual([]);
});

test('a message that two conversations take at the same moment is one turn', async (scene) => {
  const { id } = await scene.start('1');
  const release = await holdRow(id);
  const first = scene.say('1', 'hello', { originRef: 'telegram:7' });
  await untilWaiting();
  const second = scene.say('2', 'hello', { originRef: 'telegram:7' });
  await sleep(100);
  await release();
  const said = await Promise.all([first, second]);
  expect(said.map(({ duplicate }) => duplicate).toSorted()).toEqual([false, true]);
  expect(said[0].turn.id).toBe(said[1].turn.id);
});

test('a message and the sweep at the same moment: the session ends once and the message is answered', async (scene) => {
  for (let round = 0; round < 20; round++) {
    const { id } = await scene.start('1');
    scene.clock.advance(86_400_000);
    const [swept, said] = await Promise.all([scene.expire(), scene.say('1', 'hello')]);
    expect(said.session.id).not.toBe(id);
    expect((await scene.types(id)).filter((type) => type === 'session:end')).toHaveLength(1);
    const { endReason } = await scene.session(id);
    expect(endReason).toBe(swept.ended.includes(id) ? 'idle_expiry' : 'auto_reset');
    await scene.end(said.session.id);
  }
});

/** Holds a row from outside until told to let go. */
async function holdRow(id: string, table = 'sessions'): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: engine.url, options: '-c search_path=moirai' });
  await client.connect();
  await client.query('BEGIN');
  await client.query(`SELECT id FROM ${table} WHERE id = $1 FOR UPDATE`, [id]);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** Waits until a transaction of the store stands before a lock. */
async function untilWaiting(): Promise<void> {
  const client = new pg.Client({ connectionString: engine.url });
  await client.connect();
  const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  while ((await client.query(waiting)).rowCount === 0) await sleep(5);
  await client.end();
}
