import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasCode } from '../errors/moirai-error.ts';
import { formatDuration, MAX_DURATION_MS, parseDuration } from './duration.ts';

describe('parseDuration', () => {
  test.each([
    ['500ms', 500],
    ['90s', 90_000],
    ['30m', 1_800_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['0s', 0],
    ['007m', 420_000],
    ['36500d', MAX_DURATION_MS],
  ])('%s is %d milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    ['', 'empty'],
    ['90', 'no unit'],
    ['-5m', 'negative'],
    ['5w', 'none of ms, s, m, h, d'],
    ['24H', 'none of ms, s, m, h, d'],
    ['1.5h', 'not a whole number'],
    ['1h30m', 'not a whole number'],
    [' 5m', 'not a whole number'],
    ['5m\n', 'not a whole number'],
    ['36501d', 'longer than 36500d'],
    [`${'9'.repeat(400)}d`, 'longer than 36500d'],
  ])('%j is refused and the message says why', (text, why) => {
    expect(() => parseDuration(text)).toThrow(
      expect.objectContaining({ code: 'bad_duration', message: expect.stringContaining(why) }),
    );
  });

  test.each([90, null, undefined, {}])('%s, which is not text, is refused', (value) => {
    expect(() => parseDuration(value as unknown as string)).toThrow(expect.objectContaining({ code: 'bad_duration' }));
  });

  test('any text is a whole number of milliseconds or bad_duration', () => {
    const text = fc.oneof(
      fc.string(),
      fc.tuple(fc.nat(), fc.constantFrom('ms', 's', 'm', 'h', 'd', 'x')).map((pair) => pair.join('')),
    );
    fc.assert(
      fc.property(text, (value) => {
        try {
          expect(parseDuration(value)).toSatisfy(
            (ms: number) => Number.isInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS,
          );
        } catch (error) {
          expect(hasCode(error, 'bad_duration')).toBe(true);
        }
      }),
    );
  });
});

describe('formatDuration', () => {
  test.each([
    [0, '0ms'],
    [500, '500ms'],
    [999.9, '999ms'],
    [1_000, '1s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [90_000, '1m 30s'],
    [3_599_999, '59m 59s'],
    [7_500_000, '2h 5m'],
    [7_205_000, '2h'],
    [86_400_000, '1d'],
    [90_060_000, '1d 1h'],
    [604_800_000, '7d'],
    [-300_000, '-5m'],
  ])('%d milliseconds read as %j', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('%d is refused', (ms) => {
    expect(() => formatDuration(ms)).toThrow(expect.objectContaining({ code: 'bad_duration' }));
  });

  test('the units of a formatted duration add up to no more than it, and to most of it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => {
        const sum = formatDuration(ms)
          .split(' ')
          .reduce((total, part) => total + parseDuration(part), 0);
        expect(sum).toBeLessThanOrEqual(ms);
        expect(sum).toBeGreaterThanOrEqual(ms * 0.5);
      }),
    );
  });
});
