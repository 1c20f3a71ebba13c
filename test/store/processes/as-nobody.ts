// as-nobody.ts <uid> <file>: opens a store as a user without rights, writes and reads, and prints the codes as JSON.
// The modules are loaded before the rights are dropped: the sources may lie where nobody else can read.
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { machineClock } from '../../../src/store/clock.ts';
import { InlineSqliteStore } from '../../../src/store/sqlite/store.ts';
import { codeOf } from '../contract/code-of.ts';

const [, , uid = '', path = ''] = process.argv;
if (Number(uid) > 0) {
  process.setgroups?.([]);
  process.setgid?.(Number(uid));
  process.setuid?.(Number(uid));
}

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

async function use(): Promise<void> {
  const store = new InlineSqliteStore(path, machineClock, DEFAULT_RESET_RULES);
  await store.write('bootInstance', { facts, ttlMs: 1000 });
  await store.read('stats', {});
}

console.log(await codeOf(use()));
