import { expect } from 'vitest';
import { testInFullRun } from '../support/full-run.ts';
import { pollThroughRestarts } from './polling.ts';

testInFullRun(
  'who polls the log over a bad line, through two restarts, has exactly what the store has',
  {
    timeout: 180_000,
  },
  async () => {
    const report = await pollThroughRestarts(24, Math.random, console.log);
    console.log(JSON.stringify({ ...report, violations: report.violations.length }));
    expect(report.violations).toEqual([]);
    expect(report.sessions).toBeGreaterThan(10);
    expect(report.dropped).toBeGreaterThan(0);
  },
);
