import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { StoreHealth } from '../../src/engine/store-health.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { Store } from '../../src/store/port.ts';
import { SqliteFiles } from '../simulation/stores.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import type { OpenedStore } from '../simulation/world.ts';
import { chatConversation } from '../support/stores.ts';
import { type TroubledStore, troubled } from '../support/troubled-store.ts';

const FACTS = { name: null, version: 'test', host: 'here', bootId: null, pidSpace: null, pid: 1, pidStarted: null };

let files: SqliteFiles;
let time: VirtualTime;
let opened: OpenedStore;
let store: TroubledStore;
let health: StoreHealth;
let engine: Engine;
let said: (string | null)[];

beforeEach(async () => {
  files = new SqliteFiles();
  time = new VirtualTime(Date.UTC(2026, 2, 7, 12));
  opened = await files.open(time);
  store = troubled(opened.store, time);
  said = [];
  const changed = (problem: MoiraiError | null): number => said.push(problem?.code ?? null);
  health = new StoreHealth({ store, instance: 'ins_1', timers: time, changed });
  engine = await Engine.boot({
    ...{ store: health.watch(store), ids: timeSortedIds(time.now, Math.random), leaseTtlMs: 90_000 },
    instance: { id: 'ins_1', ...FACTS },
  });
});
afterEach(async () => {
  health.stop();
  await opened.close();
  files.remove();
});

const pass = (ms: number): Promise<void> => time.runUntil(time.elapsed() + ms);
const full = (): MoiraiError => new MoiraiError('store_full', 'no space is left');

describe('the health of a store', () => {
  test('is its code while no write is taken, and nothing as soon as writes are taken again', async () => {
    expect(await health.check()).toBeNull();
    store.refuse = full;
    await pass(1000);
    expect(await health.check()).toMatchObject({ code: 'store_full' });
    expect(() => health.assertWritable()).toThrow(expect.objectContaining({ code: 'store_full' }));
    store.refuse = () => null;
    await pass(1000);
    expect(() => health.assertWritable()).not.toThrow();
    expect(said).toEqual(['store_full', null]);
  });

  test('is looked at when a write failed, and not spoilt by a write that failed for itself', async () => {
    store.refuse = (name) => (name === 'startSession' ? new MoiraiError('store_locked', 'a foreign lock') : null);
    await expect(engine.start(chatConversation(1))).rejects.toMatchObject({ code: 'store_locked' });
    await pass(100);
    expect(store.asked.get('probe')).toBe(1);
    expect(health.problem).toBeNull();
    store.refuse = full;
    await expect(engine.start(chatConversation(1))).rejects.toMatchObject({ code: 'store_full' });
    await pass(100);
    expect(health.problem).toMatchObject({ code: 'store_full' });
  });

  test('is bad as soon as a write was refused because a newer program has raised the schema', async () => {
    store.refuse = () => new MoiraiError('store_newer', 'a newer schema');
    await expect(engine.start(chatConversation(1))).rejects.toMatchObject({ code: 'store_newer' });
    await pass(100);
    expect(() => health.assertWritable()).toThrow(expect.objectContaining({ code: 'store_newer' }));
  });

  test('is bad after 1.5 s without an answer, asks nothing more meanwhile, and is good with the answer', {
    timeout: 10_000,
  }, async () => {
    const { promise: answer, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    const write = (): Promise<void> => {
      asked++;
      return answer;
    };
    const silent: Store = { ...store, write: write as unknown as Store['write'] };
    const slow = new StoreHealth({ store: silent, instance: 'ins_1', timers: time, changed: () => undefined });
    const checked = slow.check();
    await pass(1600);
    expect(await checked).toMatchObject({ code: 'store_locked' });
    expect(await slow.check()).toMatchObject({ code: 'store_locked' });
    await pass(5000);
    expect(asked).toBe(1);
    resolve();
    await pass(10);
    expect(slow.problem).toBeNull();
    slow.stop();
  });

  test('keeps a lost lease waiting until something can be written', async () => {
    store.refuse = full;
    let writable = false;
    void health.writable().then(() => {
      writable = true;
    });
    await pass(10_000);
    expect(writable).toBe(false);
    store.refuse = () => null;
    await pass(1000);
    expect(writable).toBe(true);
  });
});
