import type { ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Store } from '../../src/store/port.ts';
import { checkStore, type StoreDump } from './check-store.ts';
import type { FaultMix } from './faulty-store.ts';
import { History } from './history.ts';
import { SENDER, SimProcess, SUBSCRIBERS } from './process.ts';
import { Random } from './random.ts';
import { VirtualTime } from './virtual-time.ts';

/** Sessions expire fast here, so that a short life meets every kind of end. */
export const SIM_RULES: ResetRules = {
  ...DEFAULT_RESET_RULES,
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: 2500 },
  resumeWindowMs: 1500,
  stuckAfter: 3,
};

export interface OpenedStore {
  readonly store: Store;
  dump(): Promise<StoreDump>;
  close(): Promise<void>;
}

export interface Outcome {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly writes: number;
  readonly sessions: number;
  readonly events: number;
  readonly kills: number;
  readonly pauses: number;
  readonly troubles: number;
  readonly replies: number;
  readonly runs: number;
  readonly simulatedMs: number;
  /** Of everything in the store and every delivery: equal for equal seeds. */
  readonly fingerprint: string;
}

const PROCESSES = 3;
const JOBS = ['job-1', 'job-2'] as const;
const JOB_SCHEDULE = 'every 1m';
const FAULTY_MS = 8000;
/** After the faults end, everything must have drained in this much simulated time. */
const DRAIN_MS = 90_000;

/** One seed's world: several processes on one store, faults drawn from the seed, then peace. */
export class World {
  readonly random: Random;
  readonly time = new VirtualTime(Date.UTC(2026, 2, 7, 12));
  readonly mix: FaultMix;
  readonly store: Store;
  readonly history: History;
  readonly dead = new Set<string>();
  readonly sameHost: boolean;
  faults = true;
  working = true;
  #instances = 0;
  #replies = 0;
  #kills = 0;
  #pauses = 0;
  #troubles = 0;
  #processes: SimProcess[] = [];
  /** The last job that was made due, on its way to the store. */
  #makingDue: Promise<unknown> = Promise.resolve();

  constructor(seed: number, store: Store) {
    this.random = new Random(seed);
    this.store = store;
    this.history = new History(this.time.lease);
    this.sameHost = this.random.chance(0.5);
    const swarm = (most: number): number => (this.random.chance(0.4) ? 0 : this.random.next() * most);
    this.mix = { refused: swarm(0.05), lostReply: swarm(0.08), slow: swarm(0.5) };
  }

  newInstance(): string {
    return `ins_${++this.#instances}`;
  }

  newReply(): number {
    return ++this.#replies;
  }

  async run(): Promise<void> {
    for (const id of JOBS) await this.#addJob(id);
    for (let i = 0; i < PROCESSES; i++) this.#processes.push(new SimProcess(this, `p${i}`));
    this.#misfortune();
    this.#makeJobsDue();
    await this.time.runUntil(FAULTY_MS);
    this.#peace();
    await this.#makingDue;
    for (const id of JOBS) await this.store.write('removeJob', { id });
    const limit = this.time.elapsed() + DRAIN_MS;
    while (this.time.elapsed() < limit) {
      await this.time.runUntil(this.time.elapsed() + 1000);
      if (await this.#drained()) return;
    }
    this.history.violation(`not drained ${DRAIN_MS} ms after the last fault: ${await this.#leftovers()}`);
  }

  get figures(): { kills: number; pauses: number; troubles: number; simulatedMs: number } {
    return { kills: this.#kills, pauses: this.#pauses, troubles: this.#troubles, simulatedMs: this.time.elapsed() };
  }

  /** Crashes, pauses past the lease, clocks that are set. */
  #misfortune(): void {
    this.time.after(this.random.between(150, 1500), () => {
      if (!this.faults) return;
      const slot = this.random.between(0, PROCESSES - 1);
      const dice = this.random.next();
      if (dice < 0.35) this.#crash(slot);
      else if (dice < 0.6) this.#freeze(slot);
      else if (dice < 0.9) this.#troubleStore(slot);
      else this.time.wallOffset += this.random.between(-6000, 6000);
      this.#misfortune();
    });
  }

  #crash(slot: number): void {
    this.#kills++;
    this.#processes[slot]?.kill();
    const name = `p${slot}.${this.#kills}`;
    this.time.after(this.random.between(1, 1500), () => {
      this.#processes[slot] = new SimProcess(this, name);
    });
  }

  #freeze(slot: number): void {
    const process = this.#processes[slot];
    this.#pauses++;
    process?.pause();
    this.time.after(this.random.between(100, 4500), () => process?.wakeUp());
  }

  /** The store refuses, is late, or loses its answers, for one process that lives. */
  #troubleStore(slot: number): void {
    const process = this.#processes[slot];
    if (process === undefined) return;
    this.#troubles++;
    process.trouble = this.random.pick(['refuses', 'loses answers', 'is late'] as const);
    this.time.after(this.random.between(200, 3000), () => {
      process.trouble = null;
    });
  }

  async #addJob(id: string): Promise<void> {
    const nextAt = this.time.now() + this.random.between(100, 1000);
    await this.store.write('addJob', {
      ...{ id, name: null, schedule: JOB_SCHEDULE, timezone: 'UTC', prompt: id, target: { to: 'local' }, nextAt },
      ...{ madeIn: null, madeBy: null },
    });
  }

  /** Jobs are due far more often than their schedule says. */
  #makeJobsDue(): void {
    this.time.after(this.random.between(300, 1200), () => {
      if (!this.working) return;
      const job = { id: this.random.pick(JOBS), nextAt: this.time.now(), paused: false };
      const made = this.store.write('scheduleJob', job).catch((thrown) => this.history.violation(String(thrown)));
      this.#makingDue = Promise.all([this.#makingDue, made]);
      this.#makeJobsDue();
    });
  }

  #peace(): void {
    this.faults = false;
    this.working = false;
    Object.assign(this.mix, { refused: 0, lostReply: 0, slow: 0 });
    for (const process of this.#processes) {
      process.trouble = null;
      process.wakeUp();
    }
  }

  async #drained(): Promise<boolean> {
    return (await this.#leftovers()) === '';
  }

  async #leftovers(): Promise<string> {
    const stats = await this.store.read('stats', {});
    const subscribers = await this.store.read('listSubscribers', {});
    const turns = await this.store.read('unfinishedTurns', { limit: 5 });
    const replies = await this.store.read('countDeliveries', {});
    const lanes = subscribers.filter(({ lanes, deadLetters }) => lanes + deadLetters > 0).map(({ name }) => name);
    const left = [];
    if (stats.open > 0) left.push(`${stats.open} sessions open (${stats.openUnowned} without an owner)`);
    if (lanes.length > 0) left.push(`undelivered events for ${lanes.join(', ')}`);
    if (subscribers.length < SUBSCRIBERS.length) left.push('a subscriber that never got registered');
    if ((replies[SENDER] ?? 0) > 0) left.push(`${replies[SENDER]} replies`);
    if (turns.length > 0) left.push(`unfinished turns ${turns.map(({ id, state }) => `${id} ${state}`).join(', ')}`);
    return left.join('; ');
  }
}

/** Runs one seed and checks it. */
export async function simulate(seed: number, open: (time: VirtualTime) => Promise<OpenedStore>): Promise<Outcome> {
  const time: { current: VirtualTime | null } = { current: null };
  const clock = new Proxy({} as VirtualTime, {
    get: (_, property) => Reflect.get(time.current ?? new VirtualTime(0), property),
  });
  const opened = await open(clock);
  try {
    const world = new World(seed, opened.store);
    time.current = world.time;
    await world.run();
    const dump = await opened.dump();
    checkStore(dump, world.history);
    const { history } = world;
    return {
      seed,
      violations: history.violations,
      writes: history.writes,
      sessions: dump.sessions.length,
      events: dump.events.length,
      replies: dump.deliveries.length,
      runs: dump.runs.length,
      ...world.figures,
      fingerprint: fingerprint(dump, history),
    };
  } finally {
    await opened.close();
  }
}

function fingerprint(dump: StoreDump, history: History): string {
  const deliveries = [...history.deliveries].map(([name, seen]) => [name, [...seen.keys()]]);
  deliveries.push(['replies', [...history.arrivals.keys()]]);
  let hash = 2166136261;
  for (const char of JSON.stringify([dump, deliveries])) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619);
  return (hash >>> 0).toString(16);
}
