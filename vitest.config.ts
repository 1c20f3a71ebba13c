import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongFirst } from './test/support/long-first.ts';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // More than there are cores: many tests wait for other processes most of the time.
    maxWorkers: Math.max(2, availableParallelism()) + 2,
    sequence: { sequencer: LongFirst },
    testTimeout: 60_000,
    hookTimeout: 30_000,
    teardownTimeout: 30_000,
    globalSetup: ['test/support/compile-cache.ts', 'test/support/page-setup.ts', 'test/support/postgres-setup.ts'],
    reporters: ['default', './test/support/count-reporter.ts'],
  },
});
