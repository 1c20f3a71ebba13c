import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { type Child, runChild } from './processes/run-child.ts';

const folder = mkdtempSync(join(tmpdir(), 'moirai-sequence-'));
const database = await createDatabase();
const children: Child[] = [];

afterAll(async () => {
  for (const child of children) child.process.kill('SIGKILL');
  await Promise.all(children.map(({ exited }) => exited));
  rmSync(folder, { recursive: true });
  await database.drop();
});

const PROCESSES = 4;
const WIDTH = 4;

test.each([
  ['PostgreSQL', database.url, share(2000, 32_000)],
  ['SQLite', `sqlite:${join(folder, 'log.db')}`, share(1200, 6000)],
])(
  'readers that follow the numbers miss no event of sixteen writers (%s)',
  { timeout: 180_000 },
  async (name, url, wanted) => {
    const store = await openStore(url, '/', DEFAULT_RESET_RULES);
    const writers = Array.from({ length: PROCESSES }, (_, i) => {
      return runChild('store-process.ts', [url, `writer-${i}`, 'threads']);
    });
    children.push(...writers);
    for (const writer of writers) expect(await writer.line()).toBe('ready');
    const started = performance.now();
    let busy = true;
    const work = writers.map(async (writer) => {
      writer.send(JSON.stringify({ do: 'chatter', events: wanted / PROCESSES, width: WIDTH }));
      await writer.line();
    });
    const readers = [500, 120].map((limit) => follow(store, limit, () => busy));
    await Promise.all(work);
    busy = false;
    const seconds = (performance.now() - started) / 1000;
    const followed = await Promise.all(readers);
    const whole = await follow(store, 500, () => false);
    const promises = await store.read('checkPromises', { sample: 3 });
    await store.close();

    expect(whole.length).toBeGreaterThanOrEqual(wanted - PROCESSES * WIDTH * 2);
    expect(promises.filter(({ broken }) => broken > 0)).toEqual([]);
    for (const read of followed) {
      const seen = new Set(read.map(({ id }) => id));
      const missed = whole.filter(({ id }) => !seen.has(id)).map(({ id }) => id);
      expect({ missed: missed.length, first: missed.slice(0, 5) }).toEqual({ missed: 0, first: [] });
      expect(read.findIndex(({ id }, i) => id !== whole[i]?.id)).toBe(-1);
      expect(read.length).toBe(whole.length);
    }
    for (const conversation of Map.groupBy(whole, ({ session_key }) => session_key).values()) assertOrder(conversation);
    console.log(
      `${name}: 0 of ${whole.length} events missed by two readers beside ${PROCESSES * WIDTH} writers, ` +
        `${seconds.toFixed(1)} s, ${Math.round(whole.length / seconds)} events/s`,
    );
  },
);

/** Reads the log by its numbers until the writers are done and nothing is left. */
async function follow(store: Store, limit: number, busy: () => boolean): Promise<MoiraiEvent[]> {
  const read: MoiraiEvent[] = [];
  let after = 0;
  for (;;) {
    const last = !busy();
    const { events, next } = await store.read('listEvents', { after, limit, types: [], sessionId: null });
    for (const { seq, event } of events) {
      if (seq <= after) throw new Error(`number ${seq} came after ${after}`);
      after = seq;
      read.push(event);
    }
    if (next !== after) throw new Error(`the next number is ${next}, not ${after}`);
    if (events.length === 0 && last) return read;
  }
}

/** One session after the other, each from its start to its end, each numbered without a gap. */
function assertOrder(events: readonly MoiraiEvent[]): void {
  let session: string | null = null;
  let number = 0;
  for (const { session_id, session_seq, type, id } of events) {
    if (session === null) expect(type).toBe('session:start');
    if (session_id !== session) number = 0;
    session = type === 'session:end' ? null : session_id;
    if (session_seq !== ++number) throw new Error(`${id} follows number ${number - 1}`);
  }
}
