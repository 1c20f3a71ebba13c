import { afterAll } from 'vitest';
import { storeContract } from './contract.ts';
import { postgres } from './engines.ts';

const engine = await postgres();
afterAll(engine.remove);

storeContract('PostgreSQL', engine.open);
