import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DEFAULT_RESET_RULES } from '../lifecycle/reset-policy.ts';
import { machineClock } from '../store/clock.ts';
import { InlineSqliteStore } from '../store/sqlite/store.ts';
import { Places } from './places.ts';

test('a chat that moved before the eyes of another process is known by its first id', async () => {
  const home = mkdtempSync(join(tmpdir(), 'moirai-places-'));
  const store = new InlineSqliteStore(join(home, 'state.db'), machineClock, DEFAULT_RESET_RULES);
  const [here, elsewhere] = [new Places(store), new Places(store)];
  const place = { type: 'group', chat: '-100200' } as const;
  expect(await here.known('telegram', place)).toEqual(place);
  expect(await here.idsOf('telegram', place)).toEqual(['-100200']);
  await elsewhere.moved('telegram', '-200', '-100200');
  expect(await here.known('telegram', place)).toEqual({ type: 'group', chat: '-200' });
  expect(await here.idsOf('telegram', place)).toEqual(['-100200', '-200']);
  await store.close();
  rmSync(home, { recursive: true });
});
