import { expect, test } from 'vitest';
import { share } from '../support/share.ts';
import { killAgainAndAgain } from './killing.ts';

const KILLS = share(2, 15);

test('a gateway that is killed again and again answers every message once', { timeout: 300_000 }, async () => {
  const report = await killAgainAndAgain(KILLS, Math.random, console.log);
  console.log(`${report.kills} kills, ${report.messages} messages, ${report.resent} sent again`);
  expect(report.violations).toEqual([]);
  expect(report.messages).toBeGreaterThan(KILLS);
});
