import { describe, expect, test } from 'vitest';
import { share } from '../support/share.ts';
import { drawPlan, killsOf, planText } from './plan.ts';
import { runTorture, type TortureOptions } from './run.ts';

const TIMEOUT = 240_000;

async function tortured(engine: TortureOptions['engine'], kills: number) {
  const options = { engine, kills, seed: 1, workers: 4, serverCrashes: 0, keep: false };
  const report = await runTorture(options, () => undefined);
  // Were nothing done, nothing could go wrong.
  expect(report.figures.acks).toBeGreaterThan(kills * 10);
  expect(report.kills.killed + report.kills.paused).toBeGreaterThanOrEqual(kills);
  return report;
}

describe('processes that are killed and paused at any moment', () => {
  test('lose nothing, end everything once and tell everybody, on SQLite', { timeout: TIMEOUT }, async () => {
    const { violations, evidence } = await tortured('sqlite', share(2, 25));
    expect({ violations, evidence }).toEqual({ violations: [], evidence: undefined });
  });

  test('lose nothing, end everything once and tell everybody, on PostgreSQL', { timeout: TIMEOUT }, async () => {
    const { violations, evidence } = await tortured('postgres', share(2, 12));
    expect({ violations, evidence }).toEqual({ violations: [], evidence: undefined });
  });
});

describe('the plan of a run', () => {
  const options = { seed: 7, kills: 300, workers: 4, serverCrashes: 5 };

  test('is the same for the same seed, and another one for another', () => {
    expect(planText(drawPlan(options))).toBe(planText(drawPlan(options)));
    expect(planText(drawPlan({ ...options, seed: 8 }))).not.toBe(planText(drawPlan(options)));
  });

  test('has as many kills as were asked for, about a fifth of them pauses, and all server crashes', () => {
    const plan = drawPlan(options);
    expect(plan.reduce((sum, fault) => sum + killsOf(fault, options.workers), 0)).toBe(300);
    const count = (kind: string) => plan.filter(({ fault }) => fault === kind).length;
    expect(count('server')).toBe(5);
    expect(count('pause') / 300).toBeGreaterThan(0.12);
    expect(count('pause') / 300).toBeLessThan(0.28);
    for (const kind of ['kill', 'young', 'all']) expect(count(kind)).toBeGreaterThan(0);
  });
});
