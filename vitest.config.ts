import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongFirst } from './test/support/long-first.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // More than there are cores: many tests wait for other processes most of the time.
    maxWorkers: Math.max(2, availableParallelism()) + 2,
    sequence: { sequencer: LongFirst },
    testTimeout: 60_000,
    hookTimeout: 30_000,
    teardownTimeout: 30_000,
    globalSetup: [
      'test/support/compile-cache.ts',
      'test/support/page-setup.ts',
      'test/support/bundle-setup.ts',
      'test/support/postgres-setup.ts',
    ],
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      { extends: true, test: { name: 'whole', include: ['test/**/*.test.ts'] } },
      // These have nothing to do with one another, so that they can share their processes.
      { extends: true, test: { name: 'units', include: ['src/**/*.test.ts'], isolate: false, globalSetup: [] } },
    ],
  },
});
