// shut-folder.ts <uid> <file>: writes as a user without rights while the folder of the store is open, shut and open again,
// and prints what came of each write.
import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { machineClock } from '../../../src/store/clock.ts';
import { InlineSqliteStore } from '../../../src/store/sqlite/store.ts';
import { bootTestEngine, chatConversation } from '../../support/stores.ts';
import { codeOf } from '../contract/code-of.ts';

const [, , uid = '', path = ''] = process.argv;
if (Number(uid) > 0) {
  process.setgroups?.([]);
  process.setgid?.(Number(uid));
  process.setuid?.(Number(uid));
}

const store = new InlineSqliteStore(path, machineClock, DEFAULT_RESET_RULES);
const engine = await bootTestEngine(store);

function say(chat: string): Promise<string> {
  const originRef = `telegram:${chat}`;
  return codeOf(engine.receive({ conversation: chatConversation(chat), text: 'hi', originRef, by: 'user' }));
}

const said = [await say('before')];
chmodSync(dirname(path), 0o000);
said.push(await say('first'), await say('second'));
chmodSync(dirname(path), 0o700);
said.push(await say('first'), await say('second'));
const { open } = await store.read('stats', {});
console.log(JSON.stringify({ said, open }));
