import { MoiraiError } from '../errors/moirai-error.ts';
import type { Store } from '../store/port.ts';
import type { Job, JobTarget } from './job-store.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

/** A job to add: what is to be done, and when. */
export interface JobRequest {
  readonly schedule: string;
  readonly prompt: string;
  readonly name?: string | null | undefined;
  /** IANA name; the service's own unless given. */
  readonly timezone?: string | null | undefined;
  readonly target: JobTarget;
  /** The conversation it is made in, and by whom; null for an operator. */
  readonly madeIn: string | null;
  readonly madeBy: string | null;
}

/** Whose jobs: those made in one conversation; null for an operator, who has them all. */
export type JobScope = string | null;

export interface JobServiceOptions {
  readonly store: Store;
  readonly timezone: string;
  readonly random: () => number;
}

const MAX_NAME = 100;
const MAX_PROMPT = 20_000;

/** All that can be done to jobs, whichever door it is asked at. Needs a store and nothing that runs. */
export class JobService {
  readonly #options: JobServiceOptions;

  constructor(options: JobServiceOptions) {
    this.#options = options;
  }

  /** Throws `bad_schedule` for a time that is none, is over, or never comes; `bad_input` for the rest. */
  async add(request: JobRequest): Promise<Job> {
    const { store, timezone, random } = this.#options;
    const { target, madeIn, madeBy } = request;
    const prompt = checkedText('what is to be done', request.prompt, MAX_PROMPT);
    const name = request.name?.trim() ? checkedText('the name', request.name, MAX_NAME) : null;
    const zone = request.timezone?.trim() || timezone;
    const now = await store.read('storeTime', {});
    const schedule = parseSchedule(request.schedule, zone, now);
    const nextAt = firstTick(schedule, now);
    const { text } = schedule;
    const job = { id: jobId(random), name, schedule: text, timezone: zone, prompt, target, madeIn, madeBy, nextAt };
    return store.write('addJob', job);
  }

  list(scope: JobScope): Promise<Job[]> {
    return this.#options.store.read('listJobs', { madeIn: scope });
  }

  /** By name, id, or a beginning of the id. */
  find(idOrName: string, scope: JobScope): Promise<Job> {
    return this.#options.store.read('findJob', { idOrName, madeIn: scope });
  }

  async remove(idOrName: string, scope: JobScope): Promise<Job> {
    const job = await this.find(idOrName, scope);
    await this.#options.store.write('removeJob', { id: job.id });
    return job;
  }

  async pause(idOrName: string, scope: JobScope): Promise<Job> {
    const { id } = await this.find(idOrName, scope);
    return this.#schedule(id, null, true);
  }

  /** What was missed meanwhile is not made up for: it was meant not to be done. */
  async resume(idOrName: string, scope: JobScope): Promise<Job> {
    const job = await this.find(idOrName, scope);
    if (job.pausedAt === null) return job;
    const now = await this.#options.store.read('storeTime', {});
    return this.#schedule(job.id, firstTick(scheduleOf(job, now), now), false);
  }

  /** Makes it due now, once; a paused one stays paused. */
  async run(idOrName: string, scope: JobScope): Promise<Job> {
    const job = await this.find(idOrName, scope);
    const now = await this.#options.store.read('storeTime', {});
    return this.#schedule(job.id, Math.min(now, job.nextAt ?? now), job.pausedAt !== null);
  }

  #schedule(id: string, nextAt: number | null, paused: boolean): Promise<Job> {
    return this.#options.store.write('scheduleJob', { id, nextAt, paused });
  }
}

/** When a job is due after a time; null for never, and while it is paused. What was missed meanwhile is missed. */
export function nextTickOf(job: Job, now: number): number | null {
  return job.pausedAt === null ? scheduleOf(job, now).next(now, job.createdAt) : null;
}

function scheduleOf({ schedule, timezone }: Job, now: number): Schedule {
  return parseSchedule(schedule, timezone, now);
}

function firstTick(schedule: Schedule, now: number): number {
  const at = schedule.next(now, now);
  if (at !== null) return at;
  const why = schedule.text.startsWith('at ') ? 'is over' : 'never comes';
  throw new MoiraiError('bad_schedule', `"${schedule.text}" ${why}`);
}

function checkedText(what: string, text: string, most: number): string {
  const trimmed = text.trim();
  if (trimmed === '') throw new MoiraiError('bad_input', `${what} is missing`);
  if (trimmed.length <= most) return trimmed;
  throw new MoiraiError('bad_input', `${what} has ${trimmed.length} characters; at most ${most} may be`);
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Short enough to be typed in a chat. */
function jobId(random: () => number): string {
  return `job_${Array.from({ length: 8 }, () => ALPHABET[Math.floor(random() * 32)]).join('')}`;
}
