import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { runModel } from './model.ts';
import { postgresStores } from './stores.ts';

const COMMANDS = share(3000, 100_000);
const POSTGRES_COMMANDS = share(80, 1500);

test(`the store does what the model says through ${COMMANDS} random commands`, { timeout: 900_000 }, async () => {
  const { failure, commands } = await runModel({ commands: COMMANDS, seed: 1 });
  expect(failure).toBeNull();
  expect(commands).toBeGreaterThanOrEqual(COMMANDS);
});

let database: Awaited<ReturnType<typeof createDatabase>>;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

test(`PostgreSQL does what the model says through ${POSTGRES_COMMANDS} of them`, { timeout: 600_000 }, async () => {
  const open = postgresStores(database.url);
  const { failure } = await runModel({ commands: POSTGRES_COMMANDS, seed: 1, open });
  expect(failure).toBeNull();
});
