import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { NearReads } from '../../src/store/sqlite/near-reads.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';

let folder: string;
let path: string;
let store: SqliteStore;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-near-'));
  path = join(folder, 'state.db');
  store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

function first(read: Promise<unknown>): Promise<string> {
  return Promise.race([read.then(() => 'the answer'), turnOfTheLoop('the loop')]);
}

test('a read of a few rows is answered before the event loop turns, a long page by another thread', async () => {
  expect(await first(store.read('getSession', { sessionId: 'ses_1' }))).toBe('the answer');
  expect(await first(store.read('listMessages', { sessionId: 'ses_1', after: 0, limit: 50 }))).toBe('the answer');
  const page = store.read('listMessages', { sessionId: 'ses_1', after: 0, limit: 500 });
  expect(await first(page)).toBe('the loop');
  expect(await page).toEqual([]);
});

test('what a start and each turn of a gateway read asks no other thread', async () => {
  expect(await first(store.read('staleTurns', { sessionId: null, limit: 200 }))).toBe('the answer');
  expect(await first(store.read('abandonedApprovals', { limit: 100 }))).toBe('the answer');
  expect(await first(store.read('turnFiles', { turnId: 'trn_1' }))).toBe('the answer');
  expect(await first(store.read('movesOf', { platform: 'telegram', chat: '-1' }))).toBe('the answer');
  expect(await first(store.read('turnReply', { turnId: 'trn_1' }))).toBe('the answer');
  expect(await first(store.read('liveReplyOf', { turnId: 'trn_1' }))).toBe('the answer');
  const left = store.read('abandonedLiveReplies', { platform: 'telegram', limit: 100 });
  expect(await first(left)).toBe('the answer');
});

test('every read after a close is refused alike', async () => {
  await store.close();
  await expect(store.read('getSession', { sessionId: 'ses_1' })).rejects.toMatchObject({ code: 'store_closed' });
  await expect(store.read('stats', {})).rejects.toMatchObject({ code: 'store_closed' });
});

test('reads that take long twice in a row are left to the other thread for a minute', () => {
  let now = 0;
  let took = 0;
  const near = new NearReads(path, DEFAULT_RESET_RULES, () => {
    now += took;
    return now;
  });
  const isNear = (): boolean => near.read('getSession', { sessionId: 'ses_1' }) !== null;
  expect([isNear(), isNear()]).toEqual([true, true]);
  took = 30;
  expect(isNear()).toBe(true);
  took = 0;
  expect(isNear()).toBe(true);
  took = 30;
  expect([isNear(), isNear(), isNear()]).toEqual([true, true, false]);
  expect(near.read('lastSeq', {})).not.toBeNull();
  took = 0;
  now += 60_000;
  expect(isNear()).toBe(true);
  near.close();
});

test('a read that meets a lock is left to the other thread, which can wait', async () => {
  await store.close();
  const other = new DatabaseSync(path);
  other.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  const near = new NearReads(path, DEFAULT_RESET_RULES);
  expect(near.read('getSession', { sessionId: 'ses_1' })).toBeNull();
  other.exec('ROLLBACK');
  expect(near.read('getSession', { sessionId: 'ses_1' })).toMatchObject({ ok: true, value: null });
  near.close();
  other.close();
});
