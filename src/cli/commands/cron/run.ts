import type { Command } from 'commander';
import { changeJob, waitsForGateway } from '../../job-service.ts';
import { settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Makes a job due now, once. The gateway runs it; a paused job stays paused.')
    .argument('<job>', 'its name, its id, or any beginning of the id that is unique')
    .action((job: string) =>
      changeJob(
        command,
        (service) => service.run(job, null),
        ({ id, name }) => `${name ?? id} is due now.${waitsForGateway(settingsOf(command).home)}`,
      ),
    );
}
