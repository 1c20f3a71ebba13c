import type { Command } from 'commander';
import type { Job, JobRun } from '../../../cron/job-store.ts';
import { jobView, stateOf } from '../../../cron/job-view.ts';
import { jobService } from '../../job-service.ts';
import { print, printJson, printLine, relativeTime, shorten, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Lists what is scheduled, the next due first.')
    .addHelpText('after', NOTE)
    .action(() => list(command));
}

const NOTE = `
LAST says how the last run ended; \`moirai sessions list --kind cron\` shows all of them, \`moirai sessions messages\` what
was said in one. A job for one time is kept as long as its run: sessions.retention.cron.`;

const HEADINGS = ['ID', 'NAME', 'SCHEDULE', 'ZONE', 'NEXT', 'LAST', 'WHAT'];

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const jobs = await jobService(store).list(null);
    if (settings.json) return printJson({ data: jobs.map(jobView), next: null });
    if (jobs.length === 0) return printLine('Nothing is scheduled.');
    const now = Date.now();
    return print(
      table(
        HEADINGS,
        jobs.map((job) => cells(job, now)),
      ),
    );
  });
}

function cells(job: Job, now: number): string[] {
  const next = job.nextAt === null ? stateOf(job) : relativeTime(job.nextAt, now);
  const { id, name, schedule, timezone, prompt, lastRun } = job;
  return [id, name ?? '-', schedule, timezone, next, describeRun(lastRun, now), shorten(prompt, 60)];
}

function describeRun(run: JobRun | null, now: number): string {
  return run === null ? '-' : `${run.endReason ?? 'running'}, ${relativeTime(run.tickAt, now)}`;
}
