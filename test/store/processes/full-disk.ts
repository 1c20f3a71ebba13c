// full-disk.ts <folder on a small file system>: writes until the disk is full, makes room, and writes again.
// Prints one JSON line about what happened.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { SqliteStore } from '../../../src/store/sqlite/store.ts';
import { fillDisk } from './fill-disk.ts';

const folder = process.argv[2] ?? '';
const path = join(folder, 'state.db');
const ballast = join(folder, 'ballast');
const TEXT = 'x'.repeat(2000);

writeFileSync(ballast, Buffer.alloc(4 * 1024 * 1024));
let store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
const facts = {
  id: 'one',
  name: null,
  version: '0',
  host: 'h',
  bootId: null,
  pidSpace: null,
  pid: 1,
  pidStarted: null,
};
await store.write('bootInstance', { facts, ttlMs: 1e9 });

let count = 0;
const acknowledged: string[] = [];

async function write(): Promise<string> {
  const id = `ses-${++count}`;
  const key = `agent:main:telegram:dm:${count}`;
  const conversation = {
    key,
    kind: 'chat',
    platform: 'telegram',
    userId: null,
    origin: null,
    attached: false,
  } as const;
  const context = { instanceId: 'one', commandId: `cmd-${count}` };
  try {
    await store.write('receive', {
      ...{
        context,
        conversation,
        text: TEXT,
        originRef: null,
        by: 'user',
        turnId: `trn-${count}`,
        newSessionId: id,
        begin: false,
      },
    });
    acknowledged.push(id);
    return 'no error';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

async function lost(): Promise<string[]> {
  const missing: string[] = [];
  for (const sessionId of acknowledged) {
    if ((await store.read('getSession', { sessionId })) === null) missing.push(sessionId);
  }
  return missing;
}

let first = 'no error';
while (first === 'no error') first = await write();
fillDisk(join(folder, 'filler'));
const still: string[] = [];
for (let i = 0; i < 20; i++) still.push(await write());
const before = acknowledged.length;
const lostWhileFull = await lost();

rmSync(ballast);
rmSync(join(folder, 'filler'), { force: true });
const after: string[] = [];
for (let i = 0; i < 20; i++) after.push(await write());
const lostAfter = await lost();

await store.close();
store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
const reopened = await write();
const lostReopened = await lost();
const integrity = await store.read('checkIntegrity', {});
const promises = await store.read('checkPromises', { sample: 5 });
await store.close();

const report = {
  ...{ first, still: [...new Set(still)], after: [...new Set(after)], reopened, written: before },
  ...{ lostWhileFull, lostAfter, lostReopened, integrity },
  broken: promises.filter(({ broken }) => broken > 0),
};
console.log(JSON.stringify(report));
