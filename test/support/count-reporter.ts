import type { Reporter, SerializedError, TestModule } from 'vitest/node';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Prints `N passed, N failed, N skipped` alone on the last line of the run, for machines that read test counts.
 * Whatever makes the run fail counts as failed: a test, a hook, a file that cannot be imported, an unhandled error, a
 * test that never reported back, and a run that broke before its first test.
 */
export default class CountReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    // Written at exit, not at the run's end, because the global teardown may still print.
    process.once('exit', (code) => {
      const { passed, skipped } = this.#counts;
      const failed = Math.max(this.#counts.failed, code === 0 ? 0 : 1);
      process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    this.#counts = count(modules, unhandledErrors.length);
  }
}

function count(modules: readonly TestModule[], unhandledErrors: number): Counts {
  const counts: Counts = { passed: 0, failed: unhandledErrors, skipped: 0 };
  for (const module of modules) {
    for (const suite of [module, ...module.children.allSuites()]) {
      if (suite.errors().length > 0) counts.failed += 1;
    }
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'pending') counts.failed += 1;
      else counts[state] += 1;
    }
  }
  return counts;
}
