import { afterAll, beforeAll, expect, describe as suite, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { describe, runSeeds } from './run-seeds.ts';
import { postgresStores, SqliteFiles } from './stores.ts';
import { simulate } from './world.ts';

const SEEDS = share(10, 500);
const POSTGRES_SEEDS = share(1, 12);

function* range(from: number, count: number): Generator<number> {
  for (let seed = from; seed < from + count; seed++) yield seed;
}

suite('several processes on SQLite with faults drawn from a seed', () => {
  let files: SqliteFiles;
  beforeAll(() => {
    files = new SqliteFiles();
  });
  afterAll(() => files.remove());

  test(`keep every promise through ${SEEDS} seeds, and drain when the faults end`, { timeout: 900_000 }, async () => {
    const summary = await runSeeds(range(1, SEEDS), files.open);
    console.log(describe(summary));
    expect(summary.failures).toEqual([]);
    expect(summary.kills).toBeGreaterThan(SEEDS);
    expect(summary.troubles).toBeGreaterThan(SEEDS);
    expect(summary.replies).toBeGreaterThan(SEEDS);
    expect(summary.runs).toBeGreaterThan(SEEDS);
  });

  test('live the same life again when the seed is the same', { timeout: 60_000 }, async () => {
    for (const seed of [7, 77]) {
      const first = await simulate(seed, files.open);
      const again = await simulate(seed, files.open);
      expect(again).toEqual(first);
    }
    const other = await simulate(78, files.open);
    expect(other.fingerprint).not.toBe((await simulate(77, files.open)).fingerprint);
  });
});

suite('several processes on PostgreSQL with faults drawn from a seed', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  test(`keep every promise through ${POSTGRES_SEEDS} seeds`, { timeout: 600_000 }, async () => {
    const summary = await runSeeds(range(1, POSTGRES_SEEDS), postgresStores(database.url));
    console.log(describe(summary));
    expect(summary.failures).toEqual([]);
  });
});
