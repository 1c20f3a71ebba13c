import type { Command } from 'commander';
import { JobService } from '../../cron/job-service.ts';
import type { Job } from '../../cron/job-store.ts';
import { namedTarget } from '../../cron/job-targets.ts';
import { jobLine, jobView, stateOf } from '../../cron/job-view.ts';
import type { Store } from '../../store/port.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { findGateway } from '../gateway/holder.ts';
import { printable, relativeTime, shorten, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('what is scheduled')
    .description('Lists what is scheduled, the next due first.')
    .addHelpText('after', LIST_NOTE)
    .action(inStore(list));
  group
    .command('add')
    .summary('have something done')
    .description('Has something done at its time: a session of its own, whose answer is told.')
    .argument('<schedule>', '"0 9 * * 1-5", "every 30m", "at 2026-11-20T09:00" or "in 20m"')
    .argument('<text...>', 'what is to be done, in words for the agent')
    .option('--name <name>', 'what to call it')
    .option('--tz <zone>', 'IANA name of its time zone (default: that of the configuration)')
    .option('--to <target>', 'who is told: home, local for nobody, or a target as of `moirai send`', 'home')
    .addHelpText('after', ADD_NOTE)
    .action(inStore(add));
  for (const [verb, summary, description] of CHANGES) {
    group
      .command(verb)
      .summary(summary)
      .description(description)
      .argument('<job>', 'its name, its id, or any beginning of the id that is unique')
      .action(inStore((here, job: string) => change(here, verb, job)));
  }
}

/** What can be done to one job. */
const CHANGES = [
  ['remove', 'take a job out', 'Takes a job out. What runs of it goes on to its end.'],
  ['pause', 'let it rest', 'Lets a job rest until it is resumed. What runs of it goes on to its end.'],
  ['resume', 'let it go on', 'Lets a paused job go on. What it missed meanwhile is not made up for.'],
  ['run', 'have it done now', 'Makes a job due now, once. The gateway runs it; a paused job stays paused.'],
] as const;

const LIST_NOTE = `
LAST says how the last run ended; \`moirai sessions list --kind cron\` shows all of them, \`moirai sessions messages\` what
was said in one. A job for one time is kept as long as its run: sessions.retention.cron.`;

const ADD_NOTE = `
Examples:
  moirai cron add "0 9 * * 1-5" what is new in the world?
  moirai cron add --name backup --to local "every 6h" "run the backup script and check its output"`;

const HEADINGS = ['ID', 'NAME', 'SCHEDULE', 'ZONE', 'NEXT', 'LAST', 'WHAT'];

async function list({ store }: StoreSession): Promise<Answer> {
  const jobs = await jobService(store).list(null);
  const text = table(HEADINGS, jobs.map(cellsOf));
  return listing({ data: jobs.map(jobView), text, none: 'Nothing is scheduled.' });
}

function cellsOf(job: Job): string[] {
  const { id, name, schedule, timezone, prompt, nextAt, lastRun } = job;
  const next = nextAt === null ? stateOf(job) : relativeTime(nextAt);
  const last = lastRun === null ? '-' : `${lastRun.endReason ?? 'running'}, ${relativeTime(lastRun.tickAt)}`;
  return [id, name ?? '-', schedule, timezone, next, last, shorten(prompt, 60)];
}

type AddOptions = Readonly<{ name?: string; tz?: string; to: string }>;

async function add(
  { store, settings }: StoreSession,
  schedule: string,
  words: readonly string[],
  { name, tz: timezone, to }: AddOptions,
): Promise<Answer> {
  const { sessions } = await readConfig(settings);
  const target = await namedTarget(to, { store, rules: sessions });
  const request = { schedule, prompt: words.join(' '), name, timezone, target, madeIn: null, madeBy: null };
  const job = await jobService(store, sessions.reset.timezone).add(request);
  return { json: jobView(job), text: `Scheduled: ${printable(jobLine(job))}.${waitsForGateway(settings.home)}` };
}

const DONE = { remove: 'Removed', pause: 'Paused', resume: 'Goes on' };

async function change(
  { store, settings }: StoreSession,
  verb: (typeof CHANGES)[number][0],
  idOrName: string,
): Promise<Answer> {
  const job = await jobService(store)[verb](idOrName, null);
  const due = `${job.name ?? job.id} is due now.${waitsForGateway(settings.home)}`;
  return { json: jobView(job), text: printable(verb === 'run' ? due : `${DONE[verb]}: ${jobLine(job)}`) };
}

/** The jobs of a store, for an operator: all of them. */
function jobService(store: Store, timezone = 'UTC'): JobService {
  return new JobService({ store, timezone, random: Math.random });
}

/** What to add where something waits for a gateway; nothing while one runs. */
function waitsForGateway(home: string): string {
  return findGateway(home) === null ? ' No gateway runs in this home: it is done when one does.' : '';
}
