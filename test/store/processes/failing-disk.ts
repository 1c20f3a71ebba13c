import { rmSync, statSync, writeFileSync } from 'node:fs';
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { SqliteStore } from '../../../src/store/sqlite/store.ts';
import { bootTestEngine, chatConversation } from '../../support/stores.ts';

/** Writes while the disk works, fails and works again, and prints what came of each write. */
const [path = '', how = ''] = process.argv.slice(2);
const control = process.env.MOIRAI_DISK_FAULTS ?? '';
const store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
const engine = await bootTestEngine(store);
const said: string[] = [];
/** How long the log is after each write. */
const logBytes: number[] = [];

async function say(chat: string): Promise<void> {
  const message = {
    conversation: chatConversation(chat),
    text: 'hi',
    originRef: `telegram:${chat}`,
    by: 'user',
  } as const;
  said.push(
    await engine.receive(message).then(
      () => 'ok',
      (error: { code: string }) => error.code,
    ),
  );
  logBytes.push(statSync(`${path}-wal`).size);
}

await say('before');
writeFileSync(control, how);
await say('during');
await say('during');
rmSync(control);
await say('during');
await say('after');
const { open } = await store.read('stats', {});
await store.close();
process.stdout.write(JSON.stringify({ said, open, logBytes }));
