import type { Session } from '../lifecycle/session.ts';
import type { Job, JobTarget } from './job-store.ts';
import { jobTitle } from './job-view.ts';

/** What the session of a run carries of its job, which may be changed or gone when it ends. */
export interface RunOrigin {
  readonly job: string;
  readonly title: string;
  /** When it was due. */
  readonly due_at: string;
  readonly target: JobTarget;
  /** The conversation it was made in, whose files it works with; null for the operator's. */
  readonly made_in: string | null;
  /** Why it could not be started, and what becomes of its job: such a run has no turn. */
  readonly passed_over?: string;
}

export function originOf(job: Job, tickAt: number) {
  const due_at = new Date(tickAt).toISOString();
  return { job: job.id, title: jobTitle(job), due_at, target: job.target, made_in: job.madeIn } satisfies RunOrigin;
}

/** The run that a session is; null for one that is none. */
export function runOf({ kind, origin }: Session): RunOrigin | null {
  return kind === 'cron' && typeof origin?.job === 'string' ? (origin as unknown as RunOrigin) : null;
}

/** Names the one turn of a run. */
export function refOf({ job, due_at }: RunOrigin): string {
  return `cron:${job}:${Date.parse(due_at)}`;
}
