import { between, type Random, seededRandom } from '../power-cut/random.ts';

/** One fault, and how long after the one before it. */
export type Fault =
  | { readonly fault: 'kill'; readonly afterMs: number; readonly worker: number; readonly restartMs: number }
  /** Killed, started again at once, and killed again while it boots. */
  | {
      readonly fault: 'young';
      readonly afterMs: number;
      readonly worker: number;
      readonly ageMs: number;
      readonly restartMs: number;
    }
  | { readonly fault: 'all'; readonly afterMs: number; readonly restartMs: number }
  | {
      readonly fault: 'pause';
      readonly afterMs: number;
      readonly worker: number;
      readonly forMs: number;
      readonly then: 'continue' | 'kill';
      readonly restartMs: number;
    }
  | { readonly fault: 'server'; readonly afterMs: number };

export interface PlanOptions {
  readonly seed: number;
  /** SIGKILLs and SIGSTOPs together; a kill of all counts once for each worker. */
  readonly kills: number;
  readonly workers: number;
  readonly serverCrashes: number;
}

const WAKE_MS = 700;

/** Draws what will be done to whom and when. The same options give the same plan. */
export function drawPlan(options: PlanOptions): Fault[] {
  const random = seededRandom(options.seed, 1);
  const plan: Fault[] = [];
  const roster = new Roster(options.workers);
  const crashEvery = options.serverCrashes === 0 ? 0 : Math.floor(options.kills / (options.serverCrashes + 1));
  let crashes = 0;
  for (let kills = 0; kills < options.kills; ) {
    if (crashes < options.serverCrashes && kills >= crashEvery * (crashes + 1)) {
      crashes++;
      plan.push({ fault: 'server', afterMs: between(random, 300, 1500) });
    }
    const fault = drawFault(random, options.workers, options.kills - kills, roster);
    plan.push(fault);
    kills += killsOf(fault, options.workers);
  }
  return plan;
}

function drawFault(random: Random, workers: number, left: number, roster: Roster): Fault {
  const afterMs = between(random, 300, 1500);
  roster.pass(afterMs);
  const worker = roster.longerAlive(between(random, 0, workers - 1), between(random, 0, workers - 1));
  const restartMs = between(random, 0, 300);
  if (random() < 0.38 && roster.mayPause(worker)) {
    const then = random() < 0.8 ? 'continue' : 'kill';
    const forMs = between(random, 2300, 3500);
    roster.pause(worker, forMs);
    return { fault: 'pause', afterMs, worker, forMs, then, restartMs };
  }
  // Who is killed in his sleep never wakes up too late; that is for some only.
  const victim = random() < 0.85 ? roster.awake(worker) : worker;
  const which = random();
  if (which < 0.04 && left >= workers) return { fault: 'all', afterMs, restartMs };
  if (which < 0.16 && left >= 2) {
    roster.kill(victim);
    return { fault: 'young', afterMs, worker: victim, ageMs: between(random, 0, 700), restartMs };
  }
  roster.kill(victim);
  return { fault: 'kill', afterMs, worker: victim, restartMs };
}

/** Who is paused at this point of the plan (never more than half, so that somebody can take over), and who is young. */
class Roster {
  readonly #untilMs: number[];
  readonly #bornMs: number[];
  #nowMs = 0;

  constructor(workers: number) {
    this.#untilMs = Array.from({ length: workers }, () => Number.NEGATIVE_INFINITY);
    this.#bornMs = Array.from({ length: workers }, () => 0);
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  mayPause(worker: number): boolean {
    const asleep = this.#untilMs.filter((_, other) => this.#isAsleep(other)).length;
    return asleep < this.#untilMs.length / 2 && !this.#isAsleep(worker);
  }

  /** The worker, or the next one who is awake. */
  awake(worker: number): number {
    const others = this.#untilMs.map((_, i) => (worker + i) % this.#untilMs.length);
    return others.find((other) => !this.#isAsleep(other)) ?? worker;
  }

  /** Asleep, or just awake and about to find out what he missed. */
  #isAsleep(worker: number): boolean {
    return (this.#untilMs[worker] ?? 0) + WAKE_MS > this.#nowMs;
  }

  kill(worker: number): void {
    this.#bornMs[worker] = this.#nowMs;
  }

  longerAlive(one: number, other: number): number {
    return (this.#bornMs[other] ?? 0) < (this.#bornMs[one] ?? 0) ? other : one;
  }

  pause(worker: number, ms: number): void {
    this.#untilMs[worker] = this.#nowMs + ms;
  }
}

export function killsOf(fault: Fault, workers: number): number {
  return fault.fault === 'all' ? workers : fault.fault === 'young' ? 2 : fault.fault === 'server' ? 0 : 1;
}

/** One word per fault: `740k2` kills worker 2 after 740 ms, `610p0/2800` pauses worker 0 for 2800 ms. */
export function planText(plan: readonly Fault[]): string {
  return plan.map(faultText).join(' ');
}

function faultText(fault: Fault): string {
  switch (fault.fault) {
    case 'kill':
      return `${fault.afterMs}k${fault.worker}`;
    case 'young':
      return `${fault.afterMs}y${fault.worker}/${fault.ageMs}`;
    case 'all':
      return `${fault.afterMs}K`;
    case 'pause':
      return `${fault.afterMs}p${fault.worker}/${fault.forMs}${fault.then === 'kill' ? 'k' : ''}`;
    case 'server':
      return `${fault.afterMs}S`;
  }
}
