import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import { codeOf } from './contract/code-of.ts';
import { fakeClock, Scene } from './contract/scene.ts';

const PAGE = 4096;
const folder = mkdtempSync(join(tmpdir(), 'moirai-corrupt-'));
const sound = join(folder, 'sound.db');
const clock = fakeClock();
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  const store = new InlineSqliteStore(sound, clock, DEFAULT_RESET_RULES);
  const scene = sceneOn(store);
  await scene.boot();
  await scene.subscribe('listener');
  for (let i = 0; i < 60; i++) {
    const asked = await scene.ask(`${i}`, `thread ${i} ${'of wool '.repeat(40)}`);
    const messages = [{ role: 'user', text: `thread ${i} ${'of silk '.repeat(60)}`, turnId: asked.turn.id }];
    await scene.finish(
      asked,
      {},
      { messages, deliveries: [{ id: `dlv-${i}`, platform: 'telegram', target: {}, text: 'x' }] },
    );
    if (i % 2 === 0) await scene.end(asked.session.id);
  }
  await store.write('indexMessages', { limit: 1000 });
  await store.close();
});

/** What a gateway does with a store, in short; the code of each step that failed. */
async function use(path: string): Promise<string[]> {
  let store: InlineSqliteStore;
  try {
    store = new InlineSqliteStore(path, clock, DEFAULT_RESET_RULES);
  } catch (error) {
    return [await codeOf(Promise.reject(error))];
  }
  const scene = sceneOn(store);
  const every = { states: [], kinds: [], platforms: [], reasons: [], key: null, user: null, since: null };
  const steps: (() => Promise<unknown>)[] = [
    () => scene.events(),
    () => store.read('stats', {}),
    () => store.read('listSessions', { ...every, text: 'x', limit: 500, cursor: null }),
    () => store.read('listMessages', { sessionId: 'ses-one-3', after: 0, limit: 100 }),
    () => store.read('searchMessages', { text: 'silk', limit: 100 }),
    () => store.read('checkPromises', { sample: 3 }),
    () => store.read('checkIntegrity', {}),
    ...Array.from({ length: 10 }, (_, i) => () => scene.say(`${i * 6 + 1}`, 'hello')),
    () => scene.reset('7'),
    () => scene.claim('listener'),
    () => scene.claimReplies(),
    () => store.write('indexMessages', { limit: 100 }),
  ];
  const codes: string[] = [];
  for (const step of steps) codes.push(await codeOf(step()));
  await store.close();
  return codes.filter((code) => code !== 'no error');
}

function sceneOn(store: InlineSqliteStore): Scene {
  return new Scene({ store, clock } as unknown as ConstructorParameters<typeof Scene>[0]);
}

/** Damages a copy and uses it. */
async function damaged(name: string, damage: (bytes: Buffer) => void): Promise<string[]> {
  const path = join(folder, `${name}.db`);
  copyFileSync(sound, path);
  const bytes = readFileSync(path);
  damage(bytes);
  writeFileSync(path, bytes);
  const codes = await use(path);
  for (const suffix of ['', '-wal', '-shm', '-turnstile']) rmSync(path + suffix, { force: true });
  return codes;
}

test('a sound file is used without an error', async () => {
  expect(await damaged('sound-copy', () => {})).toEqual([]);
});

test('garbage in place of any page is reported as such, never as something else', async () => {
  const random = seeded(7);
  const pages = readFileSync(sound).length / PAGE;
  let noticed = 0;
  for (let page = 1; page < pages; page += 4) {
    const codes = await damaged(`page-${page}`, (bytes) => {
      for (let i = 0; i < PAGE; i++) bytes[page * PAGE + i] = Math.floor(random() * 256);
    });
    expect([page, codes.filter((code) => code !== 'store_corrupt')]).toEqual([page, []]);
    if (codes.length > 0) noticed++;
  }
  expect(noticed).toBeGreaterThan(pages / 8);
});

test('bytes flipped in the middle give a coded error or none, and never hang or crash', async () => {
  const random = seeded(11);
  const seen = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const codes = await damaged(`flip-${round}`, (bytes) => {
      for (let flips = 0; flips < 8; flips++) {
        const at = PAGE + Math.floor(random() * (bytes.length - PAGE));
        bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      }
    });
    for (const code of codes) seen.add(code);
  }
  // A flipped bit may also make another row of a session, in which a command is refused.
  expect([...seen]).toEqual(['store_corrupt', 'key_busy']);
});

test('a damaged header is not taken for a database', async () => {
  expect(await damaged('magic', (bytes) => bytes.write('nothing', 0))).toEqual(['store_not_database']);
  const truncated = join(folder, 'truncated.db');
  writeFileSync(truncated, readFileSync(sound).subarray(0, 3 * PAGE + 100));
  expect(new Set(await use(truncated))).toEqual(new Set(['store_corrupt']));
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
