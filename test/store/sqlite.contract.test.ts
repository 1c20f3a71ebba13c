import { afterAll } from 'vitest';
import { storeContract, timelessContract } from './contract.ts';
import { openInlineSqlite, threadedSqlite } from './engines.ts';

const threaded = await threadedSqlite();
afterAll(threaded.remove);

storeContract('SQLite', openInlineSqlite);
timelessContract('SQLite in threads', threaded.open);
