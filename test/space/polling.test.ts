import { expect, test } from 'vitest';
import { share } from '../support/share.ts';
import { pollThroughRestarts } from './polling.ts';

test('who polls the log over a bad line, through two restarts, has exactly what the store has', {
  timeout: 180_000,
}, async () => {
  const report = await pollThroughRestarts(share(6, 24), Math.random, console.log);
  console.log(JSON.stringify({ ...report, violations: report.violations.length }));
  expect(report.violations).toEqual([]);
  expect(report.sessions).toBeGreaterThan(10);
  expect(report.dropped).toBeGreaterThan(0);
});
