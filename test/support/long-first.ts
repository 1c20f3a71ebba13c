import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest, the longest first. */
const LONG = [
  'test/space/page.test.ts',
  'test/space/space.test.ts',
  'test/space/chat.test.ts',
  'test/cli/chat.test.ts',
  'test/gateway/matrix.test.ts',
  'test/gateway/telegram.test.ts',
  'test/cli/gateway.test.ts',
  'test/plugins/trouble.test.ts',
  'test/gateway/traces.test.ts',
  'test/torture/torture.test.ts',
  'test/store/postgres.contract.test.ts',
  'test/gateway/process.test.ts',
  'test/store/sqlite.contract.test.ts',
  'test/hooks/trouble.test.ts',
  'test/gateway/telegram-display.test.ts',
  'test/gateway/telegram-access.test.ts',
  'test/cli/run.test.ts',
  'test/gateway/cron-processes.test.ts',
  'test/gateway/killed.test.ts',
  'test/plugins/reload.test.ts',
  'test/plugins/offers.test.ts',
  'test/scenarios/subscribers.test.ts',
  'test/simulation/simulation.test.ts',
];

/** Begins with what takes longest, so that all workers end together, also in a clone where nothing has been measured yet. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rest = await super.sort(files);
    const rankOf = ({ moduleId, project }: TestSpecification): number => {
      const rank = LONG.indexOf(relative(project.config.root, moduleId));
      return rank < 0 ? LONG.length : rank;
    };
    return rest.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
