import { Cron } from 'croner';
import { Temporal } from 'temporal-polyfill';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { parseDuration } from '../lifecycle/duration.ts';

/** When something is done. */
export interface Schedule {
  /** As it is kept: read again, it is the same schedule. */
  readonly text: string;
  /**
   * The first time after `after`; null when there is none. Intervals are counted from `since`, so that they neither drift
   * nor begin anew when a process does.
   */
  next(after: number, since: number): number | null;
}

/** Nothing is done more often than this: a job is a whole conversation with a model. */
const SHORTEST_MS = 60_000;

/**
 * Reads a schedule: a cron expression of five parts (`0 9 * * 1-5`) or its nickname (`@daily`), `every 30m`,
 * `at 2026-11-20T09:00`, `in 20m`. Times without an offset are those of `zone`. Throws `bad_schedule`.
 *
 * Where clocks are put forward, what is due in the missing hour is done at its end; where they are put back, what is due at
 * one time of the day is done once, and what is due every so many minutes goes on.
 */
export function parseSchedule(text: string, zone: string, now: number): Schedule {
  const words = text.trim().replaceAll(/\s+/g, ' ');
  assertZone(zone);
  const [, verb = '', rest = ''] = /^(every|at|in) (.+)$/i.exec(words) ?? [];
  if (verb.toLowerCase() === 'every') return interval(words, rest);
  if (verb.toLowerCase() === 'at') return once(words, rest, zone);
  if (verb.toLowerCase() === 'in') return once(words, new Date(now + duration(words, rest)).toISOString(), zone);
  return expression(words, zone);
}

/** Throws `bad_schedule` unless it is the IANA name of a time zone. */
function assertZone(zone: string): void {
  // Intl also takes offsets such as +01:00, which know no daylight saving time.
  if (/^[A-Za-z]/.test(zone)) {
    try {
      new Intl.DateTimeFormat('en', { timeZone: zone });
      return;
    } catch {
      // Reported below.
    }
  }
  throw new MoiraiError('bad_schedule', `${quote(zone)} is not the IANA name of a time zone, such as Europe/Rome`);
}

function interval(words: string, rest: string): Schedule {
  const ms = duration(words, rest);
  if (ms < SHORTEST_MS) throw badSchedule(words, 'a minute is the shortest interval');
  return {
    text: `every ${rest}`,
    next: (after, since) => since + Math.max(1, Math.floor((after - since) / ms) + 1) * ms,
  };
}

function duration(words: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (thrown) {
    if (!hasCode(thrown, 'bad_duration')) throw thrown;
    throw new MoiraiError('bad_schedule', `${quote(words)} is not a schedule: ${thrown.message}`, { cause: thrown });
  }
}

const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/;
const EXACT_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/i;

function once(words: string, time: string, zone: string): Schedule {
  const at = timeOf(words, time, zone);
  return { text: `at ${time}`, next: (after) => (at > after ? at : null) };
}

function timeOf(words: string, time: string, zone: string): number {
  try {
    if (EXACT_TIME.test(time)) return Temporal.Instant.from(time).epochMilliseconds;
    if (LOCAL_TIME.test(time)) return Temporal.PlainDateTime.from(time).toZonedDateTime(zone).epochMilliseconds;
  } catch (cause) {
    throw new MoiraiError('bad_schedule', `${quote(words)} is not a schedule: there is no such day or time`, { cause });
  }
  throw badSchedule(words, `${quote(time)} is not a time such as 2026-11-20T09:00 or 2026-11-20T09:00+01:00`);
}

function expression(words: string, zone: string): Schedule {
  if (!words.startsWith('@') && words.split(' ').length !== 5) {
    throw badSchedule(words, 'a cron expression has five parts: minute, hour, day, month, weekday');
  }
  try {
    const cron = new Cron(words, { timezone: zone, mode: '5-part' });
    return { text: words, next: (after) => cron.nextRun(new Date(after))?.getTime() ?? null };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^Cron\w+: /, '') : String(cause);
    throw new MoiraiError('bad_schedule', `${quote(words)} is not a schedule: ${why}`, { cause });
  }
}

function badSchedule(words: string, why: string): MoiraiError {
  return new MoiraiError('bad_schedule', `${quote(words)} is not a schedule: ${why}`);
}

/** Texts from outside, cut short. */
function quote(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
