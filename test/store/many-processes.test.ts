import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { patience } from '../support/patience.ts';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { Scene } from './contract/scene.ts';
import { openInlineSqlite } from './engines.ts';
import { type Child, runChild } from './processes/run-child.ts';
import type { Task } from './processes/store-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'moirai-many-'));
const database = await createDatabase();
const children: Child[] = [];

afterAll(async () => {
  for (const child of children) child.process.kill('SIGKILL');
  await Promise.all(children.map(({ exited }) => exited));
  rmSync(folder, { recursive: true });
  await database.drop();
});

function start(url: string, instance: string, mode: 'inline' | 'threads'): Child {
  const child = runChild('store-process.ts', [url, instance, mode]);
  children.push(child);
  return child;
}

async function tell<T>(child: Child, task: Task): Promise<T> {
  child.send(JSON.stringify(task));
  return JSON.parse(await child.line()) as T;
}

const RACES = share(100, 1000);

const CROWD = share(5, 16);

test(`${CROWD} processes beside a saturated writer each commit within seconds`, { timeout: 120_000 }, async () => {
  const url = `sqlite:${join(folder, 'crowd.db')}`;
  // All of them find no file yet: who comes first makes it, and the others wait for that.
  const busy = start(url, 'busy', 'threads');
  const crowd = Array.from({ length: CROWD }, (_, i) => start(url, `crowd-${i}`, 'inline'));
  for (const child of [busy, ...crowd]) expect(await child.line()).toBe('ready');
  const saturated = tell<{ commits: number }>(busy, { do: 'saturate', width: 64 });
  const tasks = crowd.map((child) => tell<{ slowest: number }>(child, { do: 'commit', count: 20, pauseMs: 50 }));
  const slowest = (await Promise.all(tasks)).map((answer) => answer.slowest);
  busy.send(JSON.stringify({ do: 'stop' } satisfies Task));
  const { commits } = await saturated;
  for (const child of [busy, ...crowd]) child.process.stdin?.end();
  console.log(
    `slowest commit of ${slowest.length} processes: ${Math.round(Math.max(...slowest))} ms, ` +
      `median of their slowest: ${Math.round(slowest.toSorted((a, b) => a - b)[CROWD / 2] ?? 0)} ms, ` +
      `beside a writer that made ${commits} commits`,
  );
  expect(Math.max(...slowest)).toBeLessThan(patience(5000));
  expect(commits).toBeGreaterThan(100);
  const store = await openStore(url, '/', DEFAULT_RESET_RULES, { inline: true });
  const promises = await store.read('checkPromises', { sample: 3 });
  expect(promises.filter(({ broken }) => broken > 0)).toEqual([]);
  expect(await store.read('checkIntegrity', {})).toEqual([]);
  await store.close();
});

test.each([
  ['SQLite', `sqlite:${join(folder, 'race.db')}`],
  ['PostgreSQL', database.url],
])(
  `two processes that end the same session at once, ${RACES} times: one end each (%s)`,
  { timeout: 120_000 },
  async (_, url) => {
    const store = await openStore(url, '/', DEFAULT_RESET_RULES);
    const scene = new Scene({ ...(await openInlineSqlite()), store });
    await scene.boot();
    const racers = [start(url, 'left', 'threads'), start(url, 'right', 'threads')] as const;
    for (const racer of racers) expect(await racer.line()).toBe('ready');
    const ids = await Promise.all(Array.from({ length: RACES }, async (_, i) => (await scene.start(`${i}`)).id));
    const wins = { left: 0, right: 0 };
    for (const sessionId of ids) {
      const [left, right] = await Promise.all([
        tell<Ended>(racers[0], { do: 'end', sessionId, reason: 'api_close' }),
        tell<Ended>(racers[1], { do: 'end', sessionId, reason: 'admin_close' }),
      ]);
      expect([left.already, right.already].toSorted()).toEqual([false, true]);
      // Both are told the same end: that of the one who was first.
      expect([left.endReason, left.endedAt]).toEqual([right.endReason, right.endedAt]);
      expect(left.endReason).toBe(left.already ? 'admin_close' : 'api_close');
      wins[left.already ? 'right' : 'left']++;
    }
    const ends = await scene.events(null, ['session:end']);
    expect(ends).toHaveLength(RACES);
    expect(new Set(ends.map(({ session_id }) => session_id)).size).toBe(RACES);
    const promises = await store.read('checkPromises', { sample: 3 });
    expect(promises.filter(({ broken }) => broken > 0)).toEqual([]);
    console.log(`ends won by the two processes: ${wins.left} and ${wins.right}`);
    await store.close();
  },
);

interface Ended {
  readonly already: boolean;
  readonly endReason: string;
  readonly endedAt: number;
}
