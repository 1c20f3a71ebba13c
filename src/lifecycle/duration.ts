import { MoiraiError } from '../errors/moirai-error.ts';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type Unit = keyof typeof UNIT_MS;

/** The longest duration Moirai accepts, a hundred years: a time plus a duration always stays a valid `Date`. */
export const MAX_DURATION_MS = 36_500 * UNIT_MS.d;

/**
 * Reads a duration such as `500ms`, `90s`, `30m`, `24h` or `7d` as milliseconds. Whole numbers and one unit only;
 * zero is a duration. Anything else throws `bad_duration`.
 */
export function parseDuration(text: string): number {
  if (typeof text !== 'string') throw badDuration(text, 'it is not text with a unit');
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) throw badDuration(text, faultOf(text));
  const ms = Number(count) * UNIT_MS[unit as Unit];
  if (ms > MAX_DURATION_MS) throw badDuration(text, 'it is longer than 36500d');
  return ms;
}

/**
 * A duration for people: its two largest neighbouring units, rounded down, such as `2h 5m`, `1d`, `45s` or `500ms`.
 * Throws `bad_duration` when it is not a finite number.
 */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) throw badDuration(ms, 'it is not a finite number of milliseconds');
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < UNIT_MS.s) return `${Math.floor(ms)}ms`;
  if (ms < UNIT_MS.m) return inUnits(ms, 's');
  if (ms < UNIT_MS.h) return inUnits(ms, 'm', 's');
  if (ms < UNIT_MS.d) return inUnits(ms, 'h', 'm');
  return inUnits(ms, 'd', 'h');
}

function inUnits(ms: number, large: Unit, small?: Unit): string {
  const whole = `${Math.floor(ms / UNIT_MS[large])}${large}`;
  const rest = small === undefined ? 0 : Math.floor((ms % UNIT_MS[large]) / UNIT_MS[small]);
  return rest === 0 ? whole : `${whole} ${rest}${small}`;
}

function faultOf(text: string): string {
  if (text === '') return 'it is empty';
  if (/^\d+$/.test(text)) return 'it has no unit';
  if (/^-/.test(text)) return 'it is negative';
  if (/^\d+[A-Za-z]+$/.test(text)) return 'the unit is none of ms, s, m, h, d';
  return 'it is not a whole number followed by a unit';
}

function badDuration(value: unknown, fault: string): MoiraiError {
  const shown = JSON.stringify(String(value).slice(0, 40));
  return new MoiraiError('bad_duration', `${shown} is not a duration: ${fault}`);
}
