import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { describe, expect, test } from 'vitest';
import { fastest } from '../../test/support/fastest.ts';
import {
  DEFAULT_RESET_RULES,
  nextDeadline,
  policyFor,
  RESET_MODES,
  type ResetPolicy,
  type ResetRules,
  validatePolicy,
} from './reset-policy.ts';

const HOUR = 3_600_000;
const badPolicy = (message: string) =>
  expect.objectContaining({ code: 'bad_policy', message: expect.stringContaining(message) });
const daily = (timezone: string, at: string): ResetPolicy => ({
  ...DEFAULT_RESET_RULES.reset,
  mode: 'daily',
  timezone,
  at,
});
const ms = (iso: string): number => Temporal.Instant.from(iso).epochMilliseconds;

/** The boundaries of a session that is touched the moment it expires, from one time until another, as local times. */
function expiries(timezone: string, at: string, from: string, until: string): string[] {
  const times: string[] = [];
  const policy = daily(timezone, at);
  for (let now = ms(from); ; ) {
    const deadline = nextDeadline(policy, now);
    expect(deadline?.at).toBeGreaterThan(now);
    now = deadline?.at ?? Number.NaN;
    if (now >= ms(until)) return times;
    times.push(localTime(now, timezone));
  }
}

const localTime = (at: number, timezone: string): string =>
  Temporal.Instant.fromEpochMilliseconds(at)
    .toZonedDateTimeISO(timezone)
    .toPlainDateTime()
    .toString({ smallestUnit: 'minute' });

describe('the rules', () => {
  test('the defaults are valid plain data: idle, 24 hours, 04:00 UTC', () => {
    expect(() => validatePolicy({ ...DEFAULT_RESET_RULES.reset })).not.toThrow();
    expect(structuredClone(DEFAULT_RESET_RULES)).toStrictEqual(DEFAULT_RESET_RULES);
    expect(DEFAULT_RESET_RULES).toStrictEqual({
      reset: {
        mode: 'idle',
        idleMs: 24 * HOUR,
        at: '04:00',
        timezone: 'UTC',
        notify: 'next',
        notifyExclude: ['api', 'webhook'],
      },
      resetByType: {},
      resetByPlatform: {},
      resumeWindowMs: HOUR,
      stuckAfter: 3,
    });
  });

  const rules: ResetRules = {
    ...DEFAULT_RESET_RULES,
    resetByType: { group: { mode: 'both', idleMs: 2 * HOUR }, thread: { mode: 'none' } },
    resetByPlatform: { telegram: { idleMs: HOUR, notify: 'never' }, discord: { at: '05:30', notifyExclude: [] } },
  };

  test.each([
    ['agent:main:web:dm:1', {}],
    ['agent:main:web:channel:1', {}],
    ['agent:main:web:group:1', { mode: 'both', idleMs: 2 * HOUR }],
    ['agent:main:telegram:dm:1', { idleMs: HOUR, notify: 'never' }],
    ['agent:main:telegram:group:1', { mode: 'both', idleMs: HOUR, notify: 'never' }],
    ['agent:main:discord:thread:1:2', { mode: 'none', at: '05:30', notifyExclude: [] }],
    ['agent:main:constructor:dm:1', {}],
  ])('%s takes the type over the default and the platform over the type, field by field', (key, difference) => {
    expect(policyFor(rules, key)).toStrictEqual({ ...DEFAULT_RESET_RULES.reset, ...difference });
  });

  test('a field that is present but undefined overrides nothing', () => {
    const holes = { ...rules, resetByPlatform: { web: { idleMs: undefined } } } as unknown as ResetRules;
    expect(policyFor(holes, 'agent:main:web:dm:1').idleMs).toBe(24 * HOUR);
  });

  test('a key that is none is bad_key', () => {
    expect(() => policyFor(rules, 'telegram:1')).toThrow(expect.objectContaining({ code: 'bad_key' }));
  });
});

describe('validation', () => {
  test.each([
    ['mode', 'weekly', 'reset.mode: "weekly" is none of none, idle, daily, both'],
    ['idleMs', 0, 'reset.idleMs: 0 is not a whole number from 1'],
    ['idleMs', -1, 'reset.idleMs: -1'],
    ['idleMs', 1.5, 'reset.idleMs: 1.5'],
    ['idleMs', Number.NaN, 'reset.idleMs: NaN'],
    ['idleMs', Number.POSITIVE_INFINITY, 'reset.idleMs: Infinity'],
    ['idleMs', '24h', 'reset.idleMs: "24h"'],
    ['at', '24:00', 'reset.at: "24:00" is not HH:MM from 00:00 to 23:59'],
    ['at', '4:00', 'reset.at: "4:00"'],
    ['at', '04:60', 'reset.at: "04:60"'],
    ['at', '04:00:00', 'reset.at: "04:00:00"'],
    ['at', '04:00\n', 'reset.at'],
    ['at', 400, 'reset.at: 400'],
    ['timezone', 'Mars/Base', 'reset.timezone: "Mars/Base" is not the IANA name of a time zone'],
    ['timezone', '', 'reset.timezone: ""'],
    ['timezone', '+01:00', 'reset.timezone: "+01:00"'],
    ['timezone', '2026-01-01T00:00[Europe/Berlin]', 'reset.timezone'],
    ['timezone', null, 'reset.timezone: null'],
    ['notify', 'yes', 'reset.notify: "yes" is none of next, at_once, never'],
    ['notifyExclude', 'api', 'reset.notifyExclude: "api" is not a list of platforms'],
    ['notifyExclude', [1], 'reset.notifyExclude'],
    ['notifyExclude', undefined, 'reset.notifyExclude is missing'],
    ['idle', '24h', 'reset.idle is no setting; there are mode, idleMs'],
  ])('a policy whose %s is %j is refused with its path and the reason', (field, value, message) => {
    expect(() => validatePolicy({ ...DEFAULT_RESET_RULES.reset, [field]: value })).toThrow(badPolicy(message));
  });

  test('every mode and every minute of the day is valid', () => {
    for (const mode of RESET_MODES) validatePolicy({ ...DEFAULT_RESET_RULES.reset, mode });
    for (let minute = 0; minute < 1440; minute += 1)
      validatePolicy({ ...DEFAULT_RESET_RULES.reset, at: clock(minute) });
  });
});

describe('nextDeadline', () => {
  const noon = ms('2026-06-01T12:00Z');
  const policy = (mode: ResetPolicy['mode'], idleMs: number): ResetPolicy => ({
    ...DEFAULT_RESET_RULES.reset,
    mode,
    idleMs,
  });

  test('none has no deadline', () => {
    expect(nextDeadline(policy('none', HOUR), noon)).toBeNull();
  });

  test('idle is the activity plus the idle time', () => {
    expect(nextDeadline(policy('idle', HOUR), noon)).toStrictEqual({ at: noon + HOUR, cause: 'idle' });
  });

  test('daily is the next local time of day, strictly after the activity', () => {
    expect(nextDeadline(policy('daily', HOUR), noon)).toStrictEqual({ at: ms('2026-06-02T04:00Z'), cause: 'daily' });
    expect(nextDeadline(policy('daily', HOUR), ms('2026-06-02T03:59:59.999Z'))?.at).toBe(ms('2026-06-02T04:00Z'));
    expect(nextDeadline(policy('daily', HOUR), ms('2026-06-03T04:00Z') - 0.5)?.at).toBe(ms('2026-06-03T04:00Z'));
    expect(nextDeadline(policy('daily', HOUR), ms('2026-06-02T04:00Z'))?.at).toBe(ms('2026-06-03T04:00Z'));
  });

  test('both is the earlier one and names it, idle when they fall together', () => {
    expect(nextDeadline(policy('both', 15 * HOUR), noon)).toStrictEqual({ at: noon + 15 * HOUR, cause: 'idle' });
    expect(nextDeadline(policy('both', 16 * HOUR), noon)).toStrictEqual({ at: noon + 16 * HOUR, cause: 'idle' });
    expect(nextDeadline(policy('both', 17 * HOUR), noon)).toStrictEqual({ at: noon + 16 * HOUR, cause: 'daily' });
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 8.64e15])('an activity at %d is bad_input', (at) => {
    for (const mode of RESET_MODES) {
      expect(() => nextDeadline(policy(mode, HOUR), at)).toThrow(expect.objectContaining({ code: 'bad_input' }));
    }
  });

  test('a zone or time that does not exist is bad_policy, however often it is asked for', () => {
    for (const bad of [daily('Mars/Base', '04:00'), daily('UTC', '25:00')]) {
      for (let i = 0; i < 3; i += 1) expect(() => nextDeadline(bad, noon)).toThrow(badPolicy('no daily reset at'));
    }
  });

  test('a hundred thousand repeated calls take well under a second', () => {
    const both = { ...daily('America/New_York', '04:00'), mode: 'both' } as const;
    const ms = fastest(10, (batch) => {
      for (let i = 10_000 * batch; i < 10_000 * (batch + 1); i += 1) nextDeadline(both, noon + i);
    });
    expect(ms).toBeLessThan(80);
  });
});

describe('the daily boundary', () => {
  test.each([2026, 2027])('New York 04:00 comes once on each of the 365 local days of %d, always at 04:00', (year) => {
    const times = expiries('America/New_York', '04:00', `${year}-01-01T00:00-05:00`, `${year + 1}-01-01T00:00-05:00`);
    expect(times).toHaveLength(365);
    expect(new Set(times.map((time) => time.slice(0, 10))).size).toBe(365);
    expect(new Set(times.map((time) => time.slice(11)))).toStrictEqual(new Set(['04:00']));
  });

  test('New York 04:00 is 23 hours away over the spring change and 25 over the autumn change', () => {
    const policy = daily('America/New_York', '04:00');
    const apart = (iso: string) => ((nextDeadline(policy, ms(iso))?.at ?? 0) - ms(iso)) / HOUR;
    expect(apart('2026-03-07T04:00-05:00')).toBe(23);
    expect(apart('2026-10-31T04:00-04:00')).toBe(25);
    expect(apart('2027-03-13T04:00-05:00')).toBe(23);
    expect(apart('2027-11-06T04:00-04:00')).toBe(25);
  });

  test('Berlin 02:30 moves to 03:30 on the day that skips it, and back', () => {
    expect(expiries('Europe/Berlin', '02:30', '2026-03-28T00:00Z', '2026-03-31T00:00Z')).toStrictEqual([
      '2026-03-28T02:30',
      '2026-03-29T03:30',
      '2026-03-30T02:30',
    ]);
  });

  test('Berlin 02:30 fires at the first of the two on the day that has it twice', () => {
    const policy = daily('Europe/Berlin', '02:30');
    expect(nextDeadline(policy, ms('2026-10-25T00:00Z'))?.at).toBe(ms('2026-10-25T02:30+02:00'));
    expect(nextDeadline(policy, ms('2026-10-25T02:30+02:00'))?.at).toBe(ms('2026-10-26T02:30+01:00'));
    expect(nextDeadline(policy, ms('2026-10-25T02:30+01:00'))?.at).toBe(ms('2026-10-26T02:30+01:00'));
    expect(nextDeadline(policy, ms('2026-10-25T02:10+01:00'))?.at).toBe(ms('2026-10-26T02:30+01:00'));
  });

  test('Lord Howe, whose clock moves by half an hour, skips and repeats its times like the others', () => {
    expect(expiries('Australia/Lord_Howe', '02:15', '2026-10-03T00:00+10:30', '2026-10-06T00:00+11:00')).toStrictEqual([
      '2026-10-03T02:15',
      '2026-10-04T02:45',
      '2026-10-05T02:15',
    ]);
    expect(expiries('Australia/Lord_Howe', '01:45', '2026-04-04T00:00+11:00', '2026-04-07T00:00+10:30')).toStrictEqual([
      '2026-04-04T01:45',
      '2026-04-05T01:45',
      '2026-04-06T01:45',
    ]);
  });

  test('Apia, which skipped 30 December 2011, has no boundary for that day', () => {
    expect(expiries('Pacific/Apia', '04:00', '2011-12-28T00:00-10:00', '2012-01-02T00:00+14:00')).toStrictEqual([
      '2011-12-28T04:00',
      '2011-12-29T04:00',
      '2011-12-31T04:00',
      '2012-01-01T04:00',
    ]);
    expect(nextDeadline(daily('Pacific/Apia', '04:00'), ms('2011-12-31T00:30+14:00'))?.at).toBe(
      ms('2011-12-31T04:00+14:00'),
    );
  });

  test('Sao Paulo fires at 01:00 on the days that had no midnight', () => {
    expect(expiries('America/Sao_Paulo', '00:00', '2018-11-02T12:00Z', '2018-11-05T12:00Z')).toStrictEqual([
      '2018-11-03T00:00',
      '2018-11-04T01:00',
      '2018-11-05T00:00',
    ]);
  });

  test('St. Johns, whose clock went back over midnight, fires at its first midnight only', () => {
    expect(expiries('America/St_Johns', '00:00', '2010-11-05T12:00Z', '2010-11-09T00:00Z')).toStrictEqual([
      '2010-11-06T00:00',
      '2010-11-07T00:00',
      '2010-11-08T00:00',
    ]);
    const again = ms('2010-11-06T23:30-03:30');
    expect(nextDeadline(daily('America/St_Johns', '00:00'), again)?.at).toBe(ms('2010-11-08T00:00-03:30'));
  });

  test('Nuuk, which skips from 23:00 to midnight, fires for that evening at 00:30', () => {
    const policy = daily('America/Nuuk', '23:30');
    const friday = ms('2026-03-27T23:30-02:00');
    const moved = ms('2026-03-29T00:30-01:00');
    expect(nextDeadline(policy, ms('2026-03-29T00:10-01:00'))?.at).toBe(moved);
    expect(nextDeadline(policy, friday - 600_000)?.at).toBe(friday);
    expect(nextDeadline(policy, friday)?.at).toBe(moved);
    expect(nextDeadline(policy, moved)?.at).toBe(ms('2026-03-29T23:30-01:00'));
  });

  test.each([
    ['Asia/Kathmandu', '04:00', '2026-01-01T00:00+05:45', '2027-01-01T00:00+05:45', 365],
    ['Europe/Berlin', '02:30', '2026-01-01T00:00+01:00', '2027-01-01T00:00+01:00', 365],
    ['Australia/Lord_Howe', '02:15', '2026-01-01T00:00+11:00', '2027-01-01T00:00+11:00', 365],
    ['America/Sao_Paulo', '00:00', '2017-12-31T23:59-02:00', '2018-12-31T23:59-02:00', 365],
    ['Pacific/Apia', '12:00', '2011-01-01T00:00-10:00', '2012-01-01T00:00+14:00', 364],
    ['UTC', '23:59', '2028-01-01T00:00Z', '2029-01-01T00:00Z', 366],
  ])('%s %s comes once on every local day of a year', (timezone, at, from, until, count) => {
    const times = expiries(timezone, at, from, until);
    expect(times).toHaveLength(count);
    expect(new Set(times.map((time) => time.slice(0, 10))).size).toBe(count);
  });
});

describe('for all times', () => {
  const zones = [
    'UTC',
    'America/New_York',
    'America/Nuuk',
    'America/Sao_Paulo',
    'America/St_Johns',
    'Europe/Berlin',
    'Europe/Dublin',
    'Africa/Casablanca',
    'Africa/Cairo',
    'Asia/Kathmandu',
    'Asia/Tehran',
    'Asia/Gaza',
    'Australia/Lord_Howe',
    'Pacific/Apia',
    'Pacific/Chatham',
    'Pacific/Kwajalein',
    'Antarctica/Troll',
  ];
  const zone = fc.constantFrom(...zones);
  const minute = fc.oneof(fc.integer({ min: 0, max: 1439 }), fc.constantFrom(0, 1, 120, 150, 1410, 1439));
  const time = fc.integer({ min: Date.UTC(1975, 0), max: Date.UTC(2040, 0) });

  test('the daily boundary is the one a search with Intl alone finds', () => {
    fc.assert(
      fc.property(zone, minute, time, (timezone, at, activity) => {
        expect(nextDeadline(daily(timezone, clock(at)), activity)?.at).toBe(slowBoundary(timezone, at, activity));
      }),
      { numRuns: 500 },
    );
  });

  test('within two days of a clock change it is the same', () => {
    const near = fc.integer({ min: -48 * HOUR, max: 48 * HOUR });
    const changes = zones.flatMap((timezone) => clockChanges(timezone).map((at) => ({ timezone, at })));
    expect(changes.length).toBeGreaterThan(500);
    fc.assert(
      fc.property(fc.constantFrom(...changes), minute, near, (change, at, offset) => {
        const activity = change.at + offset;
        expect(nextDeadline(daily(change.timezone, clock(at)), activity)?.at).toBe(
          slowBoundary(change.timezone, at, activity),
        );
      }),
      { numRuns: 800 },
    );
  });

  test('what was asked before changes no answer', () => {
    const question = fc.record({
      timezone: zone,
      at: minute,
      activity: fc.integer({ min: Date.UTC(2026, 2, 28), max: Date.UTC(2026, 2, 31) }),
    });
    fc.assert(
      fc.property(fc.array(question, { minLength: 1, maxLength: 20 }), (questions) => {
        const ask = () =>
          questions.map(({ timezone, at, activity }) => nextDeadline(daily(timezone, clock(at)), activity)?.at);
        const first = ask();
        for (let other = 0; other < 70; other += 1) nextDeadline(daily('UTC', clock(other)), 0);
        expect(ask().reverse()).toStrictEqual(first.reverse());
      }),
      { numRuns: 50 },
    );
  });
});

const clock = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;

/** The first boundary after the activity, found by looking at every local date around it. */
function slowBoundary(timezone: string, minute: number, activity: number): number {
  const today = Math.floor(wall(timezone, activity) / (24 * HOUR)) * 24 * HOUR;
  const boundaries = [-2, -1, 0, 1, 2].map((day) => slowInstant(timezone, today + day * 24 * HOUR + minute * 60_000));
  return Math.min(...boundaries.filter((boundary) => boundary > activity));
}

/** The first instant that shows this wall time; where none does, the wall time read with the offset of before. */
function slowInstant(timezone: string, wallTime: number): number {
  const offsets = [-26, -13, 0, 13, 26].map(
    (hours) => wall(timezone, wallTime + hours * HOUR) - (wallTime + hours * HOUR),
  );
  const shown = offsets.map((offset) => wallTime - offset).filter((instant) => wall(timezone, instant) === wallTime);
  return shown.length > 0 ? Math.min(...shown) : wallTime - (offsets[0] ?? 0);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a zone show at an instant, as if it were UTC. */
function wall(timezone: string, instant: number): number {
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('en', {
      timeZone: timezone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  formats.set(timezone, format);
  const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((instant % 1000) + 1000) % 1000);
}

/** The clock changes of a zone from 1975 to 2030, to the millisecond. */
function clockChanges(timezone: string): number[] {
  const offset = (at: number) => wall(timezone, at) - at;
  const changes: number[] = [];
  const week = 168 * HOUR;
  for (let before = Date.UTC(1975, 0); before < Date.UTC(2030, 0); before += week) {
    let [low, high] = [before, before + week];
    if (offset(low) === offset(high)) continue;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offset(middle) === offset(low)) low = middle;
      else high = middle;
    }
    changes.push(high);
  }
  return changes;
}
