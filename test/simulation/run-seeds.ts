import type { VirtualTime } from './virtual-time.ts';
import type { OpenedStore, Outcome } from './world.ts';
import { simulate } from './world.ts';

export interface SeedSummary {
  seeds: number;
  writes: number;
  sessions: number;
  events: number;
  kills: number;
  pauses: number;
  troubles: number;
  replies: number;
  runs: number;
  simulatedMs: number;
  readonly failures: { seed: number; violations: readonly string[] }[];
}

export function emptySummary(): SeedSummary {
  const counts = { writes: 0, sessions: 0, events: 0, replies: 0, runs: 0, kills: 0, pauses: 0, troubles: 0 };
  return { seeds: 0, ...counts, simulatedMs: 0, failures: [] };
}

/** Runs seeds one after the other and adds them up; `tell` hears of each. */
export async function runSeeds(
  seeds: Iterable<number>,
  open: (time: VirtualTime) => Promise<OpenedStore>,
  tell: (outcome: Outcome) => void = () => undefined,
): Promise<SeedSummary> {
  const summary = emptySummary();
  for (const seed of seeds) {
    const outcome = await simulate(seed, open);
    addOutcome(summary, outcome);
    tell(outcome);
  }
  return summary;
}

const FIGURES = [
  ...(['writes', 'sessions', 'events', 'replies', 'runs', 'kills', 'pauses', 'troubles', 'simulatedMs'] as const),
];

export function addOutcome(summary: SeedSummary, outcome: Outcome): void {
  summary.seeds++;
  for (const figure of FIGURES) summary[figure] += outcome[figure];
  if (outcome.violations.length > 0) summary.failures.push({ seed: outcome.seed, violations: outcome.violations });
}

export function describe(summary: SeedSummary): string {
  const hours = (summary.simulatedMs / 3_600_000).toFixed(1);
  return (
    `${summary.seeds} seeds, ${hours} simulated hours, ${summary.kills} crashes, ${summary.pauses} pauses, ` +
    `${summary.troubles} stores in trouble, ${summary.sessions} sessions, ${summary.events} events, ` +
    `${summary.replies} replies, ${summary.runs} runs of jobs, ${summary.writes} writes, ${summary.failures.length} failed`
  );
}
