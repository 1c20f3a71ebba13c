import { startPostgres } from './postgres.ts';

/** Vitest's global setup: one PostgreSQL server for the whole run, unless MOIRAI_TEST_PG names one already. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.MOIRAI_TEST_PG) return undefined;
  const server = await startPostgres();
  process.env.MOIRAI_TEST_PG = server.url; // the test processes inherit it
  return server.stop;
}
