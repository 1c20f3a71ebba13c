import { describe } from 'vitest';
import { endsContract } from './contract/ends.ts';
import { livesContract } from './contract/lives.ts';
import type { Open } from './contract/scene.ts';
import { successionsContract } from './contract/successions.ts';

/** What every store does. Needs a clock that the test can set. */
export function storeContract(name: string, open: Open): void {
  timelessContract(name, open);
  describe(`${name}, in time:`, () => {
    endsContract(open);
  });
}

/** The part of it that needs no other time than the real one. */
export function timelessContract(name: string, open: Open): void {
  describe(`${name}:`, () => {
    livesContract(open);
    successionsContract(open);
  });
}
