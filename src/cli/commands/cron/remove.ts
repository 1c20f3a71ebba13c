import type { Command } from 'commander';
import { jobLine } from '../../../cron/job-view.ts';
import { changeJob } from '../../job-service.ts';

export function define(command: Command): void {
  command
    .description('Takes a job out. What runs of it goes on to its end.')
    .argument('<job>', 'its name, its id, or any beginning of the id that is unique')
    .action((job: string) =>
      changeJob(
        command,
        (service) => service.remove(job, null),
        (done) => `Removed: ${jobLine(done)}`,
      ),
    );
}
