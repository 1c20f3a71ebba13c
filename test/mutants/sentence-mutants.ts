import type { Mutant } from './mutants.ts';

/** Deliberate bugs in sentences that must come true. */
export const SENTENCE_MUTANTS: readonly Mutant[] = [
  {
    name: 'a due job that cannot be started is passed over without a word',
    file: 'src/cron/scheduler.ts',
    find: 'this.#watch({ job: job.id }, passedOver(tick, error, then));',
    replace: '',
    layer: { file: 'test/gateway/cron.test.ts', titles: 'for one time that cannot be started' },
  },
  {
    name: 'a job whose schedule cannot be read ends with its next run and nobody hears',
    file: 'src/cron/scheduler.ts',
    find: "    return 'its schedule';",
    replace: '    return null;',
    layer: { file: 'test/gateway/cron.test.ts', titles: 'whose schedule cannot be read' },
  },
  {
    name: 'a key that was taken out of the configuration is let in until a restart',
    file: 'src/cli/gateway/host.ts',
    find: 'api.useKeys(fresh.gateway);',
    replace: '',
    layer: { file: 'test/cli/gateway.test.ts', titles: 'takes keys over on SIGHUP' },
  },
];
