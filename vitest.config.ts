import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 30_000,
    globalSetup: ['test/support/compile-cache.ts', 'test/support/page-setup.ts', 'test/support/postgres-setup.ts'],
    reporters: ['default', './test/support/count-reporter.ts'],
  },
});
