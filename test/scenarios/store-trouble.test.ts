import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Scheduler } from '../../src/cron/scheduler.ts';
import { Engine } from '../../src/engine/engine.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import { createLogger } from '../../src/log/logger.ts';
import { ArrivedReplies } from '../../src/outbound/arrived-replies.ts';
import { Outbox } from '../../src/outbound/outbox.ts';
import { SendFailure } from '../../src/platforms/platform.ts';
import type { WriteName } from '../../src/store/catalogue.ts';
import type { Received } from '../../src/store/transactions/conversations.ts';
import type { DeliveryToMake } from '../../src/store/transactions/deliveries.ts';
import { postgresStores, SqliteFiles } from '../simulation/stores.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import type { OpenedStore } from '../simulation/world.ts';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { chatConversation } from '../support/stores.ts';
import { type TroubledStore, troubled } from '../support/troubled-store.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** A whole day takes its time; a run without MOIRAI_TEST_ALL is content with a part of it. */
const OUTAGE_HOURS = share(3, 24);
const log = createLogger({ level: 'silent', format: 'json' });

/** One process on a clock of the test's: engine, upkeep, outbox, and a store that goes wrong as the test says. */
class Process {
  readonly store: TroubledStore;
  readonly engine: Engine;
  readonly sent: string[] = [];
  refuse: (text: string) => Error | null = () => null;
  readonly #time: VirtualTime;

  private constructor(store: TroubledStore, engine: Engine, time: VirtualTime) {
    this.store = store;
    this.engine = engine;
    this.#time = time;
  }

  static async start(
    opened: OpenedStore,
    time: VirtualTime,
    id: string,
    arrived = new ArrivedReplies(),
  ): Promise<Process> {
    const store = troubled(opened.store, time);
    const random = (): number => 0.5;
    const facts = { name: null, version: 'test', host: 'here', bootId: null, pidSpace: null, pid: 1, pidStarted: null };
    const engine = await Engine.boot({
      store,
      ids: timeSortedIds(time.now, Math.random),
      instance: { id, ...facts },
      leaseTtlMs: 90 * SECOND,
      retry: { timers: time, random, failed: () => undefined },
    });
    const process = new Process(store, engine, time);
    const upkeep = new Upkeep(engine, {
      ...{
        heartbeatMs: 15 * SECOND,
        reapMs: MINUTE,
        timers: time,
        wallClock: time.now,
        expire: false,
        failed: () => undefined,
      },
      lost: () => process.sent.push('LEASE LOST'),
    });
    void upkeep.start();
    const outbox = new Outbox({
      ...{ engine, log, random, arrived, observer: { tried: () => undefined, sent: () => undefined } },
      senders: () => [{ name: 'telegram', send: ({ text }) => process.#send(text) }],
    });
    outbox.refresh();
    return process;
  }

  async #send(text: string): Promise<null> {
    const refusal = this.refuse(text);
    if (refusal !== null) throw refusal;
    this.sent.push(text);
    return null;
  }

  /** Writes stop working in one way for a while. */
  trouble(ms: number, refuse: (name: WriteName) => MoiraiError | null): void {
    this.store.refuse = refuse;
    this.#time.after(ms, () => {
      this.store.refuse = () => null;
    });
  }

  /** A message and its reply, in parts; once it is received, the store may fall ill. */
  async answer(chat: number, parts: readonly string[], received: () => void = () => undefined): Promise<void> {
    const conversation = chatConversation(chat);
    const { session, turn } = await this.engine.receive({ conversation, text: 'hi', originRef: null, by: 'user' });
    received();
    const deliveries: DeliveryToMake[] = parts.map((text, i) => {
      return { id: `${turn.id}:${i}`, platform: 'telegram', target: { chat }, text };
    });
    const result = { outcome: 'done', response: 'hi', model: null, usage: null } as const;
    void this.engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, { ...result, deliveries });
  }

  async leftovers(): Promise<unknown> {
    const turns = await this.store.read('unfinishedTurns', { limit: 10 });
    const { claims } = await this.store.read('heldBy', { instance: this.engine.instance });
    return { turns, replies: await this.store.read('countDeliveries', {}), claims };
  }
}

let files: SqliteFiles;
let time: VirtualTime;
let opened: OpenedStore;
let running: Process;
let arrived: ArrivedReplies;
const NOTHING_LEFT = { turns: [], replies: {}, claims: [] };

beforeEach(async () => {
  files = new SqliteFiles();
  time = new VirtualTime(Date.UTC(2026, 2, 7, 12));
  opened = await files.open(time);
  arrived = new ArrivedReplies();
  running = await Process.start(opened, time, 'ins_1', arrived);
});
afterEach(async () => {
  await opened.close();
  files.remove();
});

const pass = (ms: number): Promise<void> => time.runUntil(time.elapsed() + ms);
const full = (name: WriteName): MoiraiError | null =>
  name === 'beat' ? null : new MoiraiError('store_full', 'no space is left');

describe('a living process whose store refuses every write for a minute', () => {
  test.each([
    ['because the disk is full', full],
    ['for a reason without a name', (name: WriteName) => (name === 'beat' ? null : new MoiraiError('internal', 'no'))],
  ])('%s, finishes its turns and sends its replies afterwards, once and in order', async (_, refuse) => {
    await running.answer(1, ['1.1', '1.2']);
    await running.answer(2, ['2.1', '2.2']);
    await running.answer(3, ['3.1', '3.2'], () => running.trouble(MINUTE, refuse));
    await pass(50 * SECOND);
    expect(running.sent).not.toContain('3.1');
    await pass(2 * MINUTE);
    for (const chat of [1, 2, 3]) {
      expect(running.sent.filter((text) => text.startsWith(`${chat}.`))).toEqual([`${chat}.1`, `${chat}.2`]);
    }
    expect(await running.leftovers()).toEqual(NOTHING_LEFT);
  });

  test('keeps what it had sent when the store fell ill, and does not send it again', async () => {
    await running.answer(1, ['one', 'two']);
    running.trouble(MINUTE, (name) => (name === 'settleReply' ? new MoiraiError('store_io', 'the disk') : null));
    await pass(3 * MINUTE);
    expect(running.sent).toEqual(['one', 'two']);
    expect(await running.leftovers()).toEqual(NOTHING_LEFT);
  });
});

test('a reply that arrived and could not be settled before the lease was lost is settled by the next instance of the process, not sent again', async () => {
  const first = running;
  await first.answer(1, ['one', 'two']);
  // Nothing can be written once the first part has left.
  first.trouble(2 * MINUTE, (name) =>
    name === 'settleReply' || name === 'beat' ? new MoiraiError('store_full', 'no space') : null,
  );
  await pass(2 * MINUTE);
  expect(first.sent[0]).toBe('one');
  await pass(MINUTE);
  expect(first.sent).toContain('LEASE LOST');
  const next = await Process.start(opened, time, 'ins_next', arrived);
  await pass(3 * MINUTE);
  expect([...first.sent, ...next.sent].filter((text) => text !== 'LEASE LOST')).toEqual(['one', 'two']);
  expect(await next.leftovers()).toEqual(NOTHING_LEFT);
});

describe('an answer that is lost', () => {
  test.each(['finishTurn', 'claimReplies', 'settleReply'] as const)(
    'to %s is asked for again: the reply arrives once',
    async (lost) => {
      let times = 0;
      running.store.losesAnswer = (name) => name === lost && ++times <= 2;
      await running.answer(1, ['one', 'two']);
      await pass(MINUTE);
      expect(running.sent).toEqual(['one', 'two']);
      expect(times).toBeGreaterThan(2);
      expect(await running.leftovers()).toEqual(NOTHING_LEFT);
    },
  );

  test('to a begin leaves a turn that is found, and done again', async () => {
    const conversation = chatConversation(1);
    running.store.losesAnswer = (name) => name === 'receive';
    const arrived = running.engine.receive({ conversation, text: 'hi', originRef: 'telegram:1', by: 'user' });
    await expect(arrived).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    running.store.losesAnswer = () => false;
    expect(await running.leftovers()).toMatchObject({ turns: [{ state: 'running' }] });
    expect(await running.engine.countStrays()).toBe(1);
    await pass(MINUTE);
    expect(await running.leftovers()).toMatchObject({ turns: [{ state: 'cut' }] });
    expect(await running.engine.countStrays()).toBe(0);
  });
});

test('a turn that was begun by a lost answer is found also in a session that its process holds otherwise', async () => {
  const { engine, store } = running;
  const conversation = { ...chatConversation(1), kind: 'cli', attached: true } as const;
  const session = await engine.start(conversation);
  store.losesAnswer = (name) => name === 'receive';
  const arrived = engine.receive({ conversation, text: 'hi', originRef: null, by: 'user' });
  await expect(arrived).rejects.toMatchObject({ code: 'store_outcome_unknown' });
  store.losesAnswer = () => false;
  // What the process reads of the row afterwards is no sign that it runs the turn.
  await engine.touch(session.id, 'user');
  expect(await store.read('openTurns', { sessionId: session.id, limit: 9 })).toMatchObject([{ state: 'running' }]);
  await pass(MINUTE);
  expect(await store.read('openTurns', { sessionId: session.id, limit: 9 })).toEqual([]);
  expect(await store.read('getSession', { sessionId: session.id })).toMatchObject({ state: 'open' });
});

describe('a turn that another process ended', () => {
  const RESULT = { outcome: 'done', response: 'late', model: null, usage: null } as const;

  async function talk(attached: boolean): Promise<Received> {
    const conversation = { ...chatConversation(1), kind: 'cli', attached } as const;
    return running.engine.receive({ conversation, text: 'hi', originRef: null, by: 'user' });
  }

  async function finishLate({ session, turn }: Received, code: string): Promise<void> {
    const { engine } = running;
    const late = engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, RESULT);
    await expect(late).rejects.toMatchObject({ code });
    await pass(2 * MINUTE);
  }

  test('leaves its session with the process that holds it for more than the turn', async () => {
    const received = await talk(true);
    const { id } = received.session;
    const other = await Process.start(opened, time, 'ins_other');
    await other.engine.dropTurn(id, received.turn.id, 'interrupted', 'stopped');
    await finishLate(received, 'turn_not_found');
    expect(await running.store.read('getSession', { sessionId: id })).toMatchObject({ state: 'open' });
    expect(running.engine.holds).toMatchObject([{ sessionId: id }]);
  });

  test('leaves its session with the process that runs something in the background of it', async () => {
    const received = await talk(false);
    const { id } = received.session;
    await running.engine.background(id, 1);
    const other = await Process.start(opened, time, 'ins_other');
    await other.engine.dropTurn(id, received.turn.id, 'interrupted', 'stopped');
    await finishLate(received, 'turn_not_found');
    expect(await running.store.read('getSession', { sessionId: id })).toMatchObject({ background: 1 });
    expect(running.engine.holds).toMatchObject([{ sessionId: id }]);
  });

  test('leaves its session free where the turn was all that held it', async () => {
    const received = await talk(false);
    const other = await Process.start(opened, time, 'ins_other');
    await other.engine.dropTurn(received.session.id, received.turn.id, 'interrupted', 'stopped');
    await finishLate(received, 'fenced');
    expect(running.engine.holds).toEqual([]);
  });
});

test('a claim that its living process lost track of is released, and its events are delivered', async () => {
  const { engine, store } = running;
  await store.write('subscribe', { name: 'listener', patterns: ['session:start'], from: 'now' });
  await engine.start(chatConversation(1));
  const context = engine.commandContext();
  const claim = { context, queue: 'events/listener', token: 'lost', again: false, limit: 9, retries: 9 };
  await store.write('claimEvents', { ...claim, subscriber: 'listener', eventsPerLane: 9 });
  const delivered: string[] = [];
  const dispatcher = new Dispatcher({ ...engine.queueDeps(() => undefined), store });
  const handle = ({ id }: { id: string }): void => void delivered.push(id);
  await dispatcher.subscribe({ name: 'listener', events: ['session:start'], handle });
  await pass(2 * MINUTE);
  expect(delivered).toHaveLength(1);
  await dispatcher.stop();
});

test(`a platform that is down for ${OUTAGE_HOURS} hours gets every reply when it is back, in order`, {
  timeout: 120_000,
}, async () => {
  const down = (): Error => new SendFailure('cannot be reached', 1000, 'transient');
  running.refuse = down;
  for (let i = 1; i <= 20; i++) {
    await running.answer((i % 4) + 1, [`${i}.1`, `${i}.2`, `${i}.3`]);
    await pass(MINUTE);
  }
  await pass(OUTAGE_HOURS * HOUR);
  expect(running.sent).toEqual([]);
  running.refuse = () => null;
  await pass(2 * MINUTE);
  expect(running.sent).toHaveLength(60);
  for (let i = 1; i <= 20; i++) {
    const parts = running.sent.filter((text) => text.startsWith(`${i}.`));
    expect(parts).toEqual([`${i}.1`, `${i}.2`, `${i}.3`]);
  }
  expect(await running.leftovers()).toEqual(NOTHING_LEFT);
});

test('a reply that its platform refuses is given up after twelve attempts, and its failure is logged', async () => {
  let tries = 0;
  running.refuse = () => {
    tries++;
    return new SendFailure('no', 1000);
  };
  await running.answer(1, ['one']);
  await pass(2 * HOUR);
  expect(tries).toBe(12);
  expect(await running.leftovers()).toEqual(NOTHING_LEFT);
});

async function sendFromTwo(replies: number, one: Process, other: Process): Promise<void> {
  const arrived: string[] = [];
  for (const each of [one, other]) {
    let n = 0;
    each.refuse = () => (++n % 11 === 0 ? new SendFailure('busy', 50, 'rate_limited') : null);
    each.sent.push = (...texts: string[]) => arrived.push(...texts);
  }
  for (let i = 0; i < replies; i++) {
    await (i % 2 === 0 ? one : other).answer(i % 50, [`${i}.1`, `${i}.2`, `${i}.3`]);
    await pass(20);
  }
  await time.runUntil(time.elapsed() + 10 * MINUTE, () => arrived.length >= 3 * replies);
  await pass(5 * SECOND);
  expect(arrived).toHaveLength(3 * replies);
  const chats = Map.groupBy(arrived, (text) => Number(text.split('.')[0]) % 50);
  for (const texts of chats.values()) {
    const numbers = texts.map((text) => Number(text.split('.')[0]) * 10 + Number(text.split('.')[1]));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  }
}

test('two instances send 1,000 replies of three parts, all in order', { timeout: 120_000 }, async () => {
  await sendFromTwo(1000, running, await Process.start(opened, time, 'ins_2'));
});

const ON_POSTGRES = share(30, 1000);

test(`two instances on PostgreSQL send ${ON_POSTGRES} replies of three parts, all in order`, {
  timeout: 300_000,
}, async () => {
  const database = await createDatabase();
  const store = await postgresStores(database.url)(time);
  const [one, other] = [await Process.start(store, time, 'ins_3'), await Process.start(store, time, 'ins_4')];
  await sendFromTwo(ON_POSTGRES, one, other);
  await store.close();
  await database.drop();
});

test('a job that is due while the store refuses every write is run once, later', async () => {
  const { engine, store } = running;
  const runs: string[] = [];
  const scheduler = new Scheduler({
    ...{ engine, log, timers: time, random: () => 0.5, mayRun: async () => true, promptOf: () => 'sweep' },
    run: async ({ session }) => void runs.push(session.id),
    skipped: async () => undefined,
    passedOver: async () => undefined,
  });
  const facts = { id: 'job_1', name: null, schedule: 'every 1h', timezone: 'UTC', prompt: 'x', madeIn: null };
  const nextAt = time.now() + SECOND;
  await store.write('addJob', { ...facts, madeBy: null, target: { to: 'local' }, nextAt });
  scheduler.start();
  running.trouble(MINUTE, full);
  await pass(50 * SECOND);
  expect(runs).toEqual([]);
  let lost = 0;
  store.losesAnswer = (name) => name === 'startRun' && ++lost === 1;
  await pass(2 * MINUTE);
  expect(runs).toHaveLength(1);
  await scheduler.pause();
});
