import type { Command } from 'commander';
import { jobLine } from '../../../cron/job-view.ts';
import { changeJob } from '../../job-service.ts';

export function define(command: Command): void {
  command
    .description('Lets a paused job go on. What it missed meanwhile is not made up for.')
    .argument('<job>', 'its name, its id, or any beginning of the id that is unique')
    .action((job: string) =>
      changeJob(
        command,
        (service) => service.resume(job, null),
        (done) => `Goes on: ${jobLine(done)}`,
      ),
    );
}
