import { afterAll, describe } from 'vitest';
import { oddInputContract } from './contract/odd-input.ts';
import { openInlineSqlite, postgres } from './engines.ts';

const engine = await postgres();
afterAll(engine.remove);

describe('SQLite:', () => oddInputContract(openInlineSqlite));
describe('PostgreSQL:', () => oddInputContract(engine.open));
