import { expect, test } from 'vitest';
import { parseList, parseNames, parseTime } from '../lifecycle/list-filters.ts';
import { parseLimit } from './options.ts';

const now = Date.UTC(2026, 7, 1, 12);

test('a time is ISO 8601, or how long ago', () => {
  expect(parseTime('--since', '24h', now)).toBe(now - 86_400_000);
  expect(parseTime('--since', '0s', now)).toBe(now);
  expect(parseTime('--since', '2026-07-31', now)).toBe(Date.UTC(2026, 6, 31));
  expect(parseTime('--since', '2026-07-31T10:00:00Z', now)).toBe(Date.UTC(2026, 6, 31, 10));
  expect(parseTime('--since', '2026-07-31T10:00:00.5+02:00', now)).toBe(Date.UTC(2026, 6, 31, 8, 0, 0, 500));
  for (const text of ['', 'yesterday', '24', '2026', '2026-13-01', '1d 2h', '-1h', '31 Jul 2026']) {
    expect(() => parseTime('--since', text, now), text).toThrow('--since is a time');
  }
});

test('a limit is a whole number from 1 to 500', () => {
  expect(parseLimit('1')).toBe(1);
  expect(parseLimit('500')).toBe(500);
  for (const text of ['', '0', '501', '-1', '1.5', '1e2', '0x10', ' 5', 'all']) {
    expect(() => parseLimit(text), text).toThrow('--limit is a whole number');
  }
});

test('lists take commas, and known names only where they are known', () => {
  expect(parseList('a, b,,c ')).toEqual(['a', 'b', 'c']);
  expect(parseNames('--kind', 'chat,batch', ['chat', 'batch'])).toEqual(['chat', 'batch']);
  expect(() => parseNames('--kind', 'chat,bach', ['chat', 'batch'])).toThrow('did you mean "batch"?');
});
