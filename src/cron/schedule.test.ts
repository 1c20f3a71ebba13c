import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { describe, expect, test } from 'vitest';
import { parseSchedule } from './schedule.ts';

const NOON = Date.parse('2026-11-15T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NEW_YORK = 'America/New_York';

/** The next times of a schedule. */
function times(text: string, zone: string, after: string, count: number): string[] {
  const schedule = parseSchedule(text, zone, NOON);
  const found: string[] = [];
  for (let at = Date.parse(after); found.length < count; ) {
    const next = schedule.next(at, Date.parse(after));
    if (next === null) break;
    found.push(new Date(next).toISOString());
    at = next;
  }
  return found;
}

describe('a schedule', () => {
  test.each([
    ['0 9 * * *', ['2026-11-16T08:00:00.000Z', '2026-11-17T08:00:00.000Z']],
    [' 30  8 * * MON-FRI ', ['2026-11-16T07:30:00.000Z', '2026-11-17T07:30:00.000Z']],
    ['@weekly', ['2026-11-21T23:00:00.000Z', '2026-11-28T23:00:00.000Z']],
    ['0 0 29 2 *', ['2028-02-28T23:00:00.000Z', '2032-02-28T23:00:00.000Z']],
    ['every 90m', ['2026-11-15T13:30:00.000Z', '2026-11-15T15:00:00.000Z']],
    ['EVERY 1d', ['2026-11-16T12:00:00.000Z', '2026-11-17T12:00:00.000Z']],
    ['at 2026-11-20T09:00', ['2026-11-20T08:00:00.000Z']],
    ['at 2026-11-20 09:00:30', ['2026-11-20T08:00:30.000Z']],
    ['at 2026-11-20T09:00Z', ['2026-11-20T09:00:00.000Z']],
    ['at 2026-11-20T09:00:00-05:00', ['2026-11-20T14:00:00.000Z']],
    ['in 20m', ['2026-11-15T12:20:00.000Z']],
    ['at 2026-11-14T09:00', []],
    ['0 0 30 2 *', []],
  ])('%s', (text, expected) => {
    expect(times(text, 'Europe/Berlin', '2026-11-15T12:00:00Z', 2)).toEqual(expected);
  });

  test.each([
    ['', 'five parts'],
    ['hello', 'five parts'],
    ['0 9 * *', 'five parts'],
    ['0 0 9 * * *', 'five parts'],
    ['61 * * * *', 'minute'],
    ['*/0 * * * *', 'stepping'],
    ['@reboot', 'not supported'],
    ['every soon', 'is not a duration'],
    ['every 30s', 'shortest'],
    ['in 20', 'it has no unit'],
    ['at noon', 'is not a time such as'],
    ['at 2026-02-30T09:00', 'no such day'],
    ['at 2026-11-20T25:00', 'no such day'],
  ])('"%s" is refused, saying why', (text, why) => {
    const parse = () => parseSchedule(text, 'UTC', NOON);
    expect(parse).toThrow(expect.objectContaining({ code: 'bad_schedule', message: expect.stringContaining(why) }));
  });

  test.each(['Mars/Base', '+01:00', ''])('"%s" is no time zone', (zone) => {
    expect(() => parseSchedule('@daily', zone, NOON)).toThrow(expect.objectContaining({ code: 'bad_schedule' }));
  });
});

describe('where clocks change', () => {
  test('what is due in the missing hour is done once, at its end', () => {
    expect(times('30 2 * * *', NEW_YORK, '2026-03-07T12:00:00Z', 3)).toEqual([
      ...['2026-03-08T07:00:00.000Z', '2026-03-09T06:30:00.000Z', '2026-03-10T06:30:00.000Z'],
    ]);
    expect(times('at 2026-03-08T02:30', NEW_YORK, '2026-03-07T12:00:00Z', 3)).toEqual(['2026-03-08T07:30:00.000Z']);
  });

  test('what is due in the repeated hour is done once', () => {
    expect(times('30 1 * * *', NEW_YORK, '2026-10-31T12:00:00Z', 2)).toEqual([
      ...['2026-11-01T05:30:00.000Z', '2026-11-02T06:30:00.000Z'],
    ]);
  });

  test('what is due all the time goes on', () => {
    expect(times('0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 3)).toEqual([
      ...['2026-10-25T00:00:00.000Z', '2026-10-25T01:00:00.000Z', '2026-10-25T02:00:00.000Z'],
    ]);
    expect(times('every 1h', 'Europe/Berlin', '2026-10-24T23:30:00Z', 2)).toEqual([
      ...['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'],
    ]);
  });
});

const zones = fc.constantFrom('UTC', NEW_YORK, 'Europe/Berlin', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Pacific/Apia');
const instants = fc.integer({ min: Date.parse('2024-01-01'), max: Date.parse('2030-01-01') });

describe('whatever the time', () => {
  test('a daily time comes once a day, on every day', () => {
    fc.assert(
      fc.property(zones, instants, fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }), (...given) => {
        const [zone, after, hour, minute] = given;
        const schedule = parseSchedule(`${minute} ${hour} * * *`, zone, after);
        const day = (at: number): Temporal.PlainDate =>
          Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone).toPlainDate();
        const first = schedule.next(after, 0) ?? 0;
        const second = schedule.next(first, 0) ?? 0;
        expect(first).toBeGreaterThan(after);
        expect(day(first).until(day(second)).days).toBe(1);
        // Whenever it is asked for between the two, it is the same one: a restart neither skips it nor repeats it.
        const between = first + Math.floor((second - first) / 2);
        expect(schedule.next(between, 0)).toBe(second);
      }),
      { numRuns: 500 },
    );
  });

  test('a cron expression is next due at the first minute that fits', () => {
    const field = (most: number): fc.Arbitrary<string> =>
      fc.oneof(fc.constant('*'), fc.integer({ min: 0, max: most }).map(String), fc.constantFrom('*/7', '*/20', '3-9'));
    fc.assert(
      fc.property(field(59), field(23), instants, (minute, hour, after) => {
        const next = parseSchedule(`${minute} ${hour} * * *`, 'UTC', after).next(after, 0) ?? 0;
        let expected = Math.floor(after / MINUTE) * MINUTE + MINUTE;
        while (!fits(minute, new Date(expected).getUTCMinutes()) || !fits(hour, new Date(expected).getUTCHours())) {
          expected += MINUTE;
        }
        expect(new Date(next).toISOString()).toBe(new Date(expected).toISOString());
      }),
      { numRuns: 300 },
    );
  });

  test('an interval is due at its next multiple since it was made', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), instants, fc.nat({ max: 1000 * HOUR }), (minutes, since, gone) => {
        const next = parseSchedule(`every ${minutes}m`, 'UTC', since).next(since + gone, since) ?? 0;
        expect((next - since) % (minutes * MINUTE)).toBe(0);
        expect(next).toBeGreaterThan(since + gone);
        expect(next - (since + gone)).toBeLessThanOrEqual(minutes * MINUTE);
      }),
    );
  });

  test('what is kept of a schedule is the same schedule', () => {
    const texts = fc.constantFrom('0 9 * * 1-5', '@daily', 'every 45m', 'in 3h', 'at 2029-05-06T07:08', 'In 20m');
    fc.assert(
      fc.property(texts, zones, instants, (text, zone, now) => {
        const schedule = parseSchedule(text, zone, now);
        const again = parseSchedule(schedule.text, zone, now + HOUR);
        expect(again.text).toBe(schedule.text);
        expect(again.next(now, now)).toBe(schedule.next(now, now));
      }),
    );
  });
});

/** Whether a number fits one part of an expression. */
function fits(part: string, value: number): boolean {
  if (part === '*') return true;
  if (part.startsWith('*/')) return value % Number(part.slice(2)) === 0;
  const [from, to = from] = part.split('-').map(Number);
  return value >= (from ?? 0) && value <= (to ?? 0);
}
