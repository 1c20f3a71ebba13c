import { expect, test } from 'vitest';
import { killAgainAndAgain } from './killing.ts';

test('a gateway that is killed again and again answers every message once', { timeout: 300_000 }, async () => {
  const report = await killAgainAndAgain(15, Math.random, console.log);
  console.log(`${report.kills} kills, ${report.messages} messages, ${report.resent} sent again`);
  expect(report.violations).toEqual([]);
  expect(report.messages).toBeGreaterThan(15);
});
