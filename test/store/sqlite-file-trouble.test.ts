import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { createBackup } from '../../src/store/backup/backup.ts';
import type { Store } from '../../src/store/port.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { FaultyDisk, whyNoDiskFaults } from '../support/disk-faults.ts';
import { RUN_ALL } from '../support/share.ts';
import { bootTestEngine, chatConversation } from '../support/stores.ts';

const whyNot = whyNoDiskFaults();

let folder: string;
let path: string;
let store: Store;
let engine: Engine;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-file-'));
  path = join(folder, 'state.db');
  store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
  engine = await bootTestEngine(store);
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

let chats = 0;

/** A message that is accepted, and where. */
async function say(): Promise<string> {
  const conversation = chatConversation(++chats);
  await engine.receive({ conversation, text: 'hi', originRef: null, by: 'user' });
  return conversation.key;
}

/** What another process finds there now. */
async function kept(keys: readonly string[]): Promise<string[]> {
  const other = await SqliteStore.open(path, DEFAULT_RESET_RULES);
  const found = await Promise.all(keys.map((key) => other.read('openSession', { key })));
  await other.close();
  return keys.filter((_, i) => found[i] !== null);
}

/** As checkpoints of a busy gateway do from time to time. */
function checkpoint(): void {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}

const remade = (): string => join(folder, 'remade');
const backup = (): string => join(folder, 'backup');
const copy = (): string => join(folder, 'older-copy');

describe('a database file under an open store', () => {
  const swaps: [what: string, swap: () => void][] = [
    ['written over by an older copy', () => copyFileSync(copy(), path)],
    ['written over by a copy that was made anew', () => copyFileSync(remade(), path)],
    ['written over by a backup of a moment ago', () => copyFileSync(backup(), path)],
    ['written over by something else', () => writeFileSync(path, 'no database at all\n'.repeat(5000))],
    ['emptied', () => truncateSync(path, 0)],
    ['replaced by an older copy', () => renameSync(copy(), path)],
    ['removed', () => rmSync(path)],
    ['removed with its log', () => ['', '-wal', '-shm'].forEach((end) => void rmSync(`${path}${end}`))],
    ['moved away', () => renameSync(path, `${path}.away`)],
  ];

  test.each(swaps)('that is %s: nothing more is accepted, and readers are told', async (_, swap) => {
    await say();
    checkpoint();
    copyFileSync(path, copy());
    await engine.beat();
    await say();
    checkpoint();
    await engine.beat();
    const db = new DatabaseSync(path);
    db.exec(`VACUUM INTO '${remade()}'`);
    db.close();
    const request = { engine: 'sqlite', place: path, file: backup(), replace: false, now: Date.now() } as const;
    await createBackup({ ...request, progress: () => undefined });
    swap();
    const codes: string[] = [];
    for (let i = 0; i < 4; i++) await say().catch((error: { code: string }) => codes.push(error.code));
    // The first was written before it could be seen, unless what was read of the other file made no sense.
    expect(['store_outcome_unknown', 'store_replaced']).toContain(codes[0]);
    expect(codes.slice(1)).toEqual(['store_replaced', 'store_replaced', 'store_replaced']);
    await expect(store.read('lastSeq', {})).rejects.toMatchObject({ code: 'store_replaced' });
    await expect(store.read('stats', {})).rejects.toMatchObject({ code: 'store_replaced' });
  });

  test('that comes back as it was is used again, and nothing that was accepted is lost', async () => {
    const accepted = [await say()];
    renameSync(path, `${path}.away`);
    await expect(say()).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    await expect(say()).rejects.toMatchObject({ code: 'store_replaced' });
    renameSync(`${path}.away`, path);
    accepted.push(await say());
    expect(await store.read('stats', {})).toMatchObject({ open: 3 });
    expect(await kept(accepted)).toEqual(accepted);
  });

  test('that lost its log keeps everything accepted, and goes on', async () => {
    const accepted = [await say(), await say()];
    expect(await store.read('stats', {})).toMatchObject({ open: 2 });
    rmSync(`${path}-wal`);
    accepted.push(await say(), await say());
    expect(existsSync(`${path}-wal`)).toBe(true);
    expect(await store.read('stats', {})).toMatchObject({ open: 4 });
    expect(await store.read('openSession', { key: accepted[3] ?? '' })).not.toBeNull();
    expect(await kept(accepted)).toEqual(accepted);
  });

  test('that others write to and checkpoint is the same one', async () => {
    const other = await SqliteStore.open(path, DEFAULT_RESET_RULES);
    const beside = await bootTestEngine(other);
    for (let i = 0; i < 20; i++) {
      await beside.beat();
      await beside.start(chatConversation(`other ${i}`));
      checkpoint();
      await say();
      if (i % 5 === 0) await engine.beat();
    }
    expect(await store.read('stats', {})).toMatchObject({ open: 40 });
    await other.close();
  });
});

describe.skipIf(whyNot !== undefined && !RUN_ALL)('a disk that fails under an open store', () => {
  const faults: ['sync' | 'full', string][] = [
    ['sync', 'store_outcome_unknown'],
    ['full', 'store_full'],
  ];

  /** What came of writes before, while and after the disk failed: see the script. */
  function writeThroughFault(how: 'sync' | 'full'): { said: string[]; open: number; logBytes: number[] } {
    const disk = new FaultyDisk();
    const script = join(import.meta.dirname, 'processes', 'failing-disk.ts');
    const place = join(folder, 'other.db');
    const child = spawnSync(process.execPath, [script, place, how], {
      encoding: 'utf8',
      env: { ...process.env, ...disk.environment },
    });
    disk.close();
    expect(child.stderr).toBe('');
    return JSON.parse(child.stdout);
  }

  test.each(faults)('(%s) is answered with %s, and the same message is kept once when it works again', (how, code) => {
    const { said, open } = writeThroughFault(how);
    expect(said[0]).toBe('ok');
    expect(said[1]).toBe(code);
    expect(['store_io', 'store_full', 'store_outcome_unknown']).toContain(said[2]);
    expect(said.slice(3)).toEqual(['ok', 'ok']);
    expect(open).toBe(3);
  });

  test('and could not sync its log has all of it in the database before anything more is written', () => {
    const { logBytes } = writeThroughFault('sync');
    const [before = 0, , , firstAfter = before] = logBytes;
    expect(firstAfter).toBeLessThan(before);
  });
});

describe('a thread of the store that dies', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** The next message to a thread is one that it cannot understand. */
  function garbleNext(): void {
    const send = Worker.prototype.postMessage;
    vi.spyOn(Worker.prototype, 'postMessage').mockImplementationOnce(function (this: Worker) {
      send.call(this, '{');
    });
  }

  test('while it reads is replaced: who waits gets a code, and the next read is answered', async () => {
    expect(await store.read('stats', {})).toMatchObject({ open: 0 });
    garbleNext();
    const waiting = [store.read('stats', {}), store.read('stats', {})];
    for (const read of waiting) await expect(read).rejects.toMatchObject({ code: 'store_thread_died' });
    expect(await store.read('stats', {})).toMatchObject({ open: 0 });
  });

  test('while it writes is replaced: who waits is told that it may have happened, and the next write is kept', async () => {
    const heard: unknown[] = [];
    store.onCommit((effects) => heard.push(effects));
    garbleNext();
    await expect(say()).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    const key = await say();
    expect(await store.read('openSession', { key })).not.toBeNull();
    expect(heard).toHaveLength(1);
  });
});

test('answers that are together longer than any text can be are handed over one by one', {
  timeout: 120_000,
}, async () => {
  const text = '\u0001'.repeat(16 * 1024 * 1024);
  const { id: sessionId } = await engine.start(chatConversation('long'));
  await engine.appendBeside(sessionId, [{ role: 'user', text, turnId: null }]);
  // Six of them are too long as JSON, and the thread takes all that wait at once.
  const pages = Array.from({ length: 7 }, () => store.read('listMessages', { sessionId, after: 0, limit: 500 }));
  for (const page of pages) expect((await page).map((message) => message.text === text)).toEqual([true]);
});

test('a transcript of long messages that only escapes can express is read page by page', {
  timeout: 120_000,
}, async () => {
  // The whole of it would be more than the longest text there can be, as JSON.
  const [count, mebi] = RUN_ALL ? [6, 16] : [3, 5];
  const text = '\u0001'.repeat(mebi * 1024 * 1024);
  const session = await engine.start(chatConversation('long'));
  for (let i = 0; i < count; i++) await engine.appendBeside(session.id, [{ role: 'user', text, turnId: null }]);
  const page = await store.read('listMessages', { sessionId: session.id, after: 0, limit: 500 });
  expect(page.length).toBeLessThan(count);
  let messages = 0;
  for await (const message of engine.transcript(session.id)) messages += message.text === text ? 1 : 0;
  expect(messages).toBe(count);
});
