import { isoTime } from '../engine/views.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Job, JobTarget } from './job-store.ts';

/** What the outside sees of a job: the shape of HTTP and of `--json`. */
export function jobView(job: Job) {
  const { id, name, schedule, timezone, prompt, lastRun } = job;
  return {
    ...{ id, name, schedule, timezone, prompt },
    deliver: targetText(job.target),
    state: stateOf(job),
    created_at: isoTime(job.createdAt),
    next_at: isoTime(job.nextAt),
    made_in: job.madeIn,
    made_by: job.madeBy,
    last_run:
      lastRun === null
        ? null
        : {
            session_id: lastRun.sessionId,
            due_at: isoTime(lastRun.tickAt),
            state: lastRun.state,
            end_reason: lastRun.endReason,
          },
  };
}

export type JobState = 'active' | 'paused' | 'done';

export function stateOf({ pausedAt, nextAt }: Job): JobState {
  if (pausedAt !== null) return 'paused';
  return nextAt === null ? 'done' : 'active';
}

/** Where a result goes, in a word. */
function targetText(target: JobTarget): string {
  return target.to === 'place' ? (target.key ?? target.platform) : target.to;
}

/** A job in a line, for people. */
export function jobLine(job: Job): string {
  const { id, name, schedule, timezone, prompt } = job;
  const named = name === null ? '' : ` “${name}”`;
  const zone = schedule.startsWith('every ') || schedule.endsWith('Z') ? '' : ` (${timezone})`;
  return `${id}${named}: ${schedule}${zone}, ${whenOf(job)}: ${shortened(prompt)}`;
}

/** When it is due, in its own time zone. */
export function whenOf(job: Job): string {
  const state = stateOf(job);
  if (job.nextAt === null) return state;
  const at = new Intl.DateTimeFormat('sv-SE', { timeZone: job.timezone, dateStyle: 'short', timeStyle: 'short' });
  return `${state === 'paused' ? 'paused, once more' : 'next'} ${at.format(job.nextAt)}`;
}

/** A name for a job that may have none: one line, since it stands in what the gateway says to agents and people. */
export function jobTitle({ name, prompt }: Pick<Job, 'name' | 'prompt'>): string {
  return name === null ? sanitize(prompt, SHOWN) : sanitize(name, MAX_NAME);
}

const SHOWN = 60;
const MAX_NAME = 100;

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > SHOWN ? `${line.slice(0, SHOWN - 1).toWellFormed()}…` : line;
}
