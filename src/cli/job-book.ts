import type { Command } from 'commander';
import { JobBook } from '../cron/job-book.ts';
import { jobView } from '../cron/job-view.ts';
import type { Store } from '../store/port.ts';
import type { Job } from '../store/transactions/jobs.ts';
import { findGateway } from './gateway/holder.ts';
import { printable, printJson, printLine } from './print.ts';
import { settingsOf } from './settings.ts';
import { visit } from './visit.ts';

/** The jobs of a store, for an operator: all of them. */
export function jobBook(store: Store, timezone = 'UTC'): JobBook {
  return new JobBook({ store, timezone, random: Math.random });
}

/** Does something to a job, and says what came of it. */
export async function changeJob(
  command: Command,
  change: (book: JobBook) => Promise<Job>,
  say: (job: Job) => string,
): Promise<void> {
  const settings = settingsOf(command);
  await visit(settings, async ({ store }) => {
    const job = await change(jobBook(store));
    if (settings.json) return printJson(jobView(job));
    return printLine(printable(say(job)));
  });
}

/** What to add where something waits for a gateway; nothing while one runs. */
export function waitsForGateway(home: string): string {
  return findGateway(home) === null ? ' No gateway runs in this home: it is done when one does.' : '';
}
