import type { SchedulePort } from '../agent/tools/ports.ts';
import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import { sessionServed } from '../turns/children.ts';
import type { JobScope, JobService } from './job-service.ts';
import { targetOf } from './job-targets.ts';
import { jobLine } from './job-view.ts';

/** What the agent may do to jobs: make, see and remove those of the conversation it talks in. */
export function schedulePort(engine: Engine, jobs: JobService): SchedulePort {
  return {
    add: async ({ schedule, task, name, timezone }, asker) => {
      const session = await sessionServed(engine.store, asker.sessionId);
      if (session.kind === 'cron') throw new MoiraiError('job_forbidden', 'a scheduled job cannot schedule jobs');
      const made = { madeIn: scopeOf(session), madeBy: asker.userId };
      const job = await jobs.add({ schedule, prompt: task, name, timezone, target: targetOf(session), ...made });
      return `Scheduled: ${jobLine(job)}`;
    },
    list: async (asker) => {
      const own = await jobs.list(scopeOf(await sessionServed(engine.store, asker.sessionId)));
      return own.length === 0 ? 'Nothing is scheduled.' : own.map(jobLine).join('\n');
    },
    remove: async (job, asker) => {
      const removed = await jobs.remove(job, scopeOf(await sessionServed(engine.store, asker.sessionId)));
      return `Removed: ${jobLine(removed)}`;
    },
  };
}

/** Whose jobs a conversation has: its own. Terminals are one person's, the operator's, who has them all. */
export function scopeOf({ kind, key }: Pick<Session, 'kind' | 'key'>): JobScope {
  return kind === 'cli' ? null : key;
}
