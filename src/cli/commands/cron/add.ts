import type { Command } from 'commander';
import { namedTarget } from '../../../cron/job-targets.ts';
import { jobLine, jobView } from '../../../cron/job-view.ts';
import { readConfig } from '../../configuration.ts';
import { jobService, waitsForGateway } from '../../job-service.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

interface Options {
  readonly name?: string;
  readonly tz?: string;
  readonly to: string;
}

export function define(command: Command): void {
  command
    .description('Has something done at its time: a session of its own, whose answer is told.')
    .argument('<schedule>', '"0 9 * * 1-5", "every 30m", "at 2026-11-20T09:00" or "in 20m"')
    .argument('<text...>', 'what is to be done, in words for the agent')
    .option('--name <name>', 'what to call it')
    .option('--tz <zone>', 'IANA name of its time zone (default: that of the configuration)')
    .option('--to <target>', 'who is told: home, local for nobody, or a target as of `moirai send`', 'home')
    .addHelpText('after', NOTE)
    .action((schedule: string, words: string[], options: Options) => add(command, schedule, words, options));
}

const NOTE = `
Examples:
  moirai cron add "0 9 * * 1-5" what is new in the world?
  moirai cron add --name backup --to local "every 6h" "run the backup script and check its output"`;

async function add(command: Command, schedule: string, words: readonly string[], options: Options): Promise<void> {
  const settings = settingsOf(command);
  const { sessions } = await readConfig(settings);
  const { name, tz: timezone } = options;
  await openStoreSession(settings, async ({ store }) => {
    const target = await namedTarget(options.to, { store, rules: sessions });
    const service = jobService(store, sessions.reset.timezone);
    const made = { madeIn: null, madeBy: null };
    const job = await service.add({ schedule, prompt: words.join(' '), name, timezone, target, ...made });
    if (settings.json) return printJson(jobView(job));
    return printLine(`Scheduled: ${printable(jobLine(job))}.${waitsForGateway(settings.home)}`);
  });
}
