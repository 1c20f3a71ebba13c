import type { Command } from 'commander';
import { jobLine } from '../../../cron/job-view.ts';
import { changeJob } from '../../job-service.ts';

export function define(command: Command): void {
  command
    .description('Lets a job rest until it is resumed. What runs of it goes on to its end.')
    .argument('<job>', 'its name, its id, or any beginning of the id that is unique')
    .action((job: string) =>
      changeJob(
        command,
        (service) => service.pause(job, null),
        (done) => `Paused: ${jobLine(done)}`,
      ),
    );
}
