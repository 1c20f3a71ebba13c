import type { Command } from 'commander';
import { JobService } from '../cron/job-service.ts';
import type { Job } from '../cron/job-store.ts';
import { jobView } from '../cron/job-view.ts';
import type { Store } from '../store/port.ts';
import { findGateway } from './gateway/holder.ts';
import { printable, printJson, printLine } from './print.ts';
import { settingsOf } from './settings.ts';
import { openStoreSession } from './store-session.ts';

/** The jobs of a store, for an operator: all of them. */
export function jobService(store: Store, timezone = 'UTC'): JobService {
  return new JobService({ store, timezone, random: Math.random });
}

/** Does something to a job, and says what came of it. */
export async function changeJob(
  command: Command,
  change: (service: JobService) => Promise<Job>,
  say: (job: Job) => string,
): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const job = await change(jobService(store));
    if (settings.json) return printJson(jobView(job));
    return printLine(printable(say(job)));
  });
}

/** What to add where something waits for a gateway; nothing while one runs. */
export function waitsForGateway(home: string): string {
  return findGateway(home) === null ? ' No gateway runs in this home: it is done when one does.' : '';
}
