import { askJson, type Source } from './source.ts';

export const RANGES = [
  { words: '1 h', seconds: 3_600, step: 60 },
  { words: '6 h', seconds: 21_600, step: 300 },
  { words: '24 h', seconds: 86_400, step: 1_200 },
  { words: '7 d', seconds: 604_800, step: 7_200 },
] as const;
export type Range = (typeof RANGES)[number];

/** The name of the line of starts, among reasons. */
export const STARTED = 'started';

/** Starts and ends, slot by slot. */
export type Timeline = ReturnType<typeof addUp>;

/** The slots of a range, whole ones: else every refresh would move them all. */
export function slotsOf({ seconds, step }: Range, now: number): { from: number; to: number; slots: number[] } {
  const to = (Math.floor(now / 1000 / step) + 1) * step;
  const from = to - seconds;
  return { from, to, slots: Array.from({ length: seconds / step }, (_, index) => from + index * step) };
}

interface Answer {
  readonly started?: readonly number[];
  readonly ended?: Readonly<Record<string, readonly number[]>>;
}

/** Asks one source of each store, and adds up what they say. */
export async function askTimeline(sources: readonly Source[], range: Range, now: number): Promise<Timeline> {
  const { from, to, slots } = slotsOf(range, now);
  const query = new URLSearchParams({ from: iso(from), to: iso(to), step: String(range.step) });
  const answers = await Promise.all(sources.map((one) => askJson<Answer>(one, `/v1/space/timeline?${query}`)));
  return addUp(answers, slots, range.step);
}

/** `slots` are the seconds since 1970 at which each slot begins. */
export function addUp(answers: readonly Answer[], slots: readonly number[], step: number) {
  const started = slots.map(() => 0);
  const ended = new Map<string, number[]>();
  for (const answer of answers) {
    addTo(started, answer.started ?? []);
    for (const [reason, counts] of Object.entries(answer.ended ?? {})) {
      const sum = ended.get(reason) ?? slots.map(() => 0);
      addTo(sum, counts);
      ended.set(reason, sum);
    }
  }
  return { slots, step, started, ended };
}

/** Always in the same order, so that a colour stays with its reason while the numbers change. */
export function reasonsOf({ ended }: Timeline): string[] {
  return [...ended.keys()].sort();
}

export function countsOf({ started, ended }: Timeline, name: string): readonly number[] {
  return name === STARTED ? started : (ended.get(name) ?? []);
}

function addTo(sum: number[], counts: readonly number[]): void {
  for (const index of sum.keys()) sum[index] = (sum[index] ?? 0) + (counts[index] ?? 0);
}

export function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

function iso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
