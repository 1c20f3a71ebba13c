import { describe } from 'vitest';
import { apiKeysContract } from './contract/api-keys.ts';
import { approvalsContract } from './contract/approvals.ts';
import { databaseRulesContract } from './contract/database-rules.ts';
import { deadLettersContract } from './contract/dead-letters.ts';
import { deadlinesContract } from './contract/deadlines.ts';
import { deletionContract } from './contract/deletion.ts';
import { deliveriesContract } from './contract/deliveries.ts';
import { endsContract } from './contract/ends.ts';
import { factsContract } from './contract/facts.ts';
import { jobsContract } from './contract/jobs.ts';
import { lanesContract } from './contract/lanes.ts';
import { listingsContract } from './contract/listings.ts';
import { newerSchemaContract } from './contract/newer-schema.ts';
import { ownershipContract } from './contract/ownership.ts';
import { platformsContract } from './contract/platforms.ts';
import { reapingContract } from './contract/reaping.ts';
import { repeatsContract } from './contract/repeats.ts';
import { repliesContract } from './contract/replies.ts';
import { rolloversContract } from './contract/rollovers.ts';
import type { Open } from './contract/scene.ts';
import { livesContract } from './contract/session-lifecycle.ts';
import { settingsContract } from './contract/settings.ts';
import { subscribingContract } from './contract/subscribing.ts';
import { successionsContract } from './contract/successions.ts';
import { transcriptsContract } from './contract/transcripts.ts';

/** What every store does. Needs a clock that the test can set. */
export function storeContract(name: string, open: Open): void {
  timelessContract(name, open);
  describe(`${name}, in time:`, () => {
    endsContract(open);
    rolloversContract(open);
    deadlinesContract(open);
    ownershipContract(open);
    reapingContract(open);
    lanesContract(open);
    deadLettersContract(open);
    deliveriesContract(open);
    repliesContract(open);
    deletionContract(open);
    listingsContract(open);
    platformsContract(open);
    approvalsContract(open);
    jobsContract(open);
  });
}

/** The part of it that needs no other time than the real one. */
export function timelessContract(name: string, open: Open): void {
  describe(`${name}:`, () => {
    livesContract(open);
    successionsContract(open);
    repeatsContract(open);
    subscribingContract(open);
    transcriptsContract(open);
    factsContract(open);
    settingsContract(open);
    apiKeysContract(open);
    databaseRulesContract(open);
    newerSchemaContract(open);
  });
}
