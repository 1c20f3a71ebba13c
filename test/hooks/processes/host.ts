/** A gateway's hooks in a process that can be killed: makes one session, and goes on until then. */
import { join } from 'node:path';
import { Dispatcher } from '../../../src/events/dispatcher.ts';
import { FileHooks } from '../../../src/extensions/hooks/file-hooks.ts';
import { ExtensionHost } from '../../../src/extensions/host/extension-host.ts';
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { createLogger } from '../../../src/log/logger.ts';
import { SqliteStore } from '../../../src/store/sqlite/store.ts';
import { bootTestEngine, chatConversation } from '../../support/stores.ts';

const home = process.argv[2] ?? '';
const store = await SqliteStore.open(join(home, 'host.db'), DEFAULT_RESET_RULES);
const engine = await bootTestEngine(store);
const dispatcher = new Dispatcher({
  ...engine.queueDeps((error) => console.error(error)),
  store,
});
const log = createLogger({ level: 'silent', format: 'json' });
await FileHooks.start({
  ...{ home, dispatcher, store, timeoutMs: 60_000, maxAttempts: 1, environment: process.env },
  ...{ host: new ExtensionHost(log), log },
});
await engine.receive({ conversation: chatConversation(1), text: 'hi', originRef: null, by: 'user' });
console.log('ready');
setInterval(() => undefined, 1000);
