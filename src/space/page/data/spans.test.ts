import { expect, test } from 'vitest';
import { agoOf, countdownOf, spanOf, untilOf } from './spans.ts';

const now = Date.parse('2026-08-01T12:00:00Z');

test.each([
  [0, '0 s'],
  [59_000, '59 s'],
  [60_000, '1 min'],
  [3_600_000, '1 h'],
  [7_500_000, '2 h 5 min'],
  [90_061_000, '1 d 1 h'],
  [3_605_000, '1 h'],
])('%d ms are %s', (ms, words) => {
  expect(spanOf(ms)).toBe(words);
});

test('how long ago is said roughly, and what seems to come is now', () => {
  expect(agoOf('2026-08-01T11:57:30Z', now)).toBe('2 min ago');
  expect(agoOf('2026-08-01T12:00:05Z', now)).toBe('now');
  expect(agoOf('nonsense', now)).toBe('unknown');
});

test('a countdown goes to the second', () => {
  expect(countdownOf('2026-08-01T12:01:10Z', now)).toBe('in 00:01:10');
  expect(countdownOf('2026-08-02T13:00:01Z', now)).toBe('in 1 d 01:00:01');
  expect(countdownOf('2026-08-01T11:59:00Z', now)).toBe('over since 1 min');
});

test('a deadline that is over says so', () => {
  expect(untilOf('2026-08-01T12:00:10Z', now)).toBe('in 10 s');
  expect(untilOf('2026-08-01T11:59:50Z', now)).toBe('over since 10 s');
});
