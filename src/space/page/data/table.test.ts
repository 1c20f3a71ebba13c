import { expect, test } from 'vitest';
import { readSnapshot } from '../protocol.ts';
import { compareTexts, compareTimes, EVERYTHING, filterSessions, sortRows } from './table.ts';
import type { WorldSession } from './world.ts';

const source = { id: 'a', name: 'a', base: '', fetch: () => Promise.reject(new TypeError()) };

function rows(...facts: Record<string, unknown>[]): WorldSession[] {
  const { sessions } = readSnapshot({ sessions: facts });
  return sessions.map((view) => ({ view, source, room: view.gateway ?? 'a', live: true }));
}

const ids = (found: readonly WorldSession[]): string[] => found.map(({ view }) => view.id);

test('all words must be found, in any field and any case', () => {
  const all = rows(
    { id: 's1', title: 'Rain today', user: 'Anna' },
    { id: 's2', title: 'Rain' },
    { id: 's3', key: 'x:anna' },
  );
  expect(ids(filterSessions(all, { ...EVERYTHING, text: 'anna' }))).toEqual(['s1', 's3']);
  expect(ids(filterSessions(all, { ...EVERYTHING, text: 'RAIN anna' }))).toEqual(['s1']);
});

test('filters by gateway, platform, phase and kind together', () => {
  const all = rows(
    { id: 's1', gateway: 'g', platform: 'web', phase: 'tool', kind: 'chat' },
    { id: 's2', gateway: 'g', platform: 'web', phase: 'idle', kind: 'chat' },
  );
  const filter = { gateway: 'g', platform: 'web', phase: 'tool', kind: 'chat', text: '' };
  expect(ids(filterSessions(all, filter))).toEqual(['s1']);
});

test('numbers in names count as numbers, no time comes last, and equals stay in order', () => {
  expect(['user-10', 'user-9'].sort(compareTexts)).toEqual(['user-9', 'user-10']);
  expect(['', '2026', '2025'].sort(compareTimes)).toEqual(['2025', '2026', '']);
  const all = rows({ id: 's3' }, { id: 's1' }, { id: 's2' });
  expect(
    ids(
      sortRows(
        all,
        () => 0,
        true,
        ({ view }) => view.id,
      ),
    ),
  ).toEqual(['s1', 's2', 's3']);
});
