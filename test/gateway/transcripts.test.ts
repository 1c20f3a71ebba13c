import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { describeThisProcess } from '../../src/engine/host.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { Transcripts } from '../../src/turns/transcripts.ts';

let home: string;
let real: Store;
let engine: Engine;
let transcripts: Transcripts;
let session: Session;
/** How many rows each read of the transcript gave. */
let read: number[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'moirai-transcripts-'));
  real = await openStore('sqlite:state.db', home, DEFAULT_RESET_RULES, { inline: true });
  read = [];
  const store: Store = {
    ...{ engine: real.engine, location: real.location },
    write: (name, args) => real.write(name, args),
    read: async (name, args) => {
      const result = await real.read(name, args);
      if (name === 'listMessages') read.push((result as unknown[]).length);
      return result;
    },
    onCommit: (listener) => real.onCommit(listener),
    useRules: (rules) => real.useRules(rules),
    close: () => real.close(),
  };
  const ids = timeSortedIds(Date.now, Math.random);
  const instance = { id: 'ins_1', name: null, version: '0', ...describeThisProcess() };
  engine = await Engine.boot({ store, ids, instance, leaseTtlMs: 60_000 });
  transcripts = new Transcripts(engine);
  const party = { key: 'agent:main:api:dm:1', kind: 'api', platform: 'api', userId: null, origin: null } as const;
  session = await engine.start({ ...party, attached: false });
});

afterEach(async () => {
  await engine.stop();
  await real.close();
  rmSync(home, { recursive: true });
});

async function say(count: number, text = 'x'): Promise<void> {
  const rows = Array.from({ length: count }, () => ({ role: 'user', text, turnId: null }));
  await engine.appendBeside(session.id, rows);
}

async function seen(of: Transcripts): Promise<readonly number[]> {
  const now = await real.read('getSession', { sessionId: session.id });
  if (now === null) throw new TypeError('the session is gone');
  return (await of.of(now)).map(({ position }) => position);
}

test('a transcript is read whole once, and afterwards only what is new', async () => {
  await say(3);
  expect(await seen(transcripts)).toEqual([1, 2, 3]);
  await say(2);
  expect(await seen(transcripts)).toEqual([1, 2, 3, 4, 5]);
  expect(await seen(transcripts)).toEqual([1, 2, 3, 4, 5]);
  expect(read).toEqual([3, 2, 0]);
});

test('a session that was seen when it was fresh is never read whole', async () => {
  expect(await seen(transcripts)).toEqual([]);
  await say(2);
  expect(await seen(transcripts)).toEqual([1, 2]);
  expect(read).toEqual([2]);
});

test('where much is missing, nothing is', async () => {
  await say(1);
  await seen(transcripts);
  await say(120);
  expect(await seen(transcripts)).toEqual(Array.from({ length: 121 }, (_, i) => i + 1));
});

test('a long transcript is not remembered, and still whole', async () => {
  await say(2, 'y'.repeat(100_000));
  await seen(transcripts);
  await say(1);
  expect(await seen(transcripts)).toEqual([1, 2, 3]);
  expect(read).toEqual([2, 3]);
});
