import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_DURATION_MS, parseDuration } from '../lifecycle/duration.ts';
import { nearestName } from '../lifecycle/events.ts';
import type { Kind } from './declaration.ts';

/** Node's timers know no longer delay: whatever is waited for has to fit. */
const MAX_TIMER_MS = 24 * 86_400_000;

/** The end of a sentence that begins "<the value> is". */
export function fault(text: string): MoiraiError {
  return new MoiraiError('bad_input', text);
}

/** What another part of Moirai says against a value, without the value and where it stands. */
export function faultOf(thrown: unknown): MoiraiError {
  const { message } = MoiraiError.wrap(thrown);
  return fault(message.replace(/^(?:reset\.\w+: )?(?:"(?:[^"\\]|\\.)*"|[^" ]+) is /, ''));
}

/** A kind whose values are written as they are. */
export function kind<T>(read: Kind<T>['read']): Kind<T> {
  return { read, write: (value) => value, secrecy: 'none', unit: '' };
}

export function optional<T, Unit extends string>(inner: Kind<T, Unit>): Kind<T | null, Unit> {
  return {
    ...inner,
    read: (value, context) => (value === null ? null : inner.read(value, context)),
    write: (value) => (value === null ? null : inner.write(value)),
  };
}

/** Values that are never shown. */
export function secret<T>(inner: Kind<T>): Kind<T> {
  return { ...inner, secrecy: 'whole' };
}

export const text = kind(readText);

function readText(value: unknown): string {
  if (typeof value !== 'string') throw fault(isScalar(value) ? 'not text; put it in quotes' : 'not text');
  if (value.trim() === '') throw fault('empty');
  return value;
}

/** An id as platforms give them. Many are numbers and are written without quotes. */
export const identifier = kind(readIdentifier);

function readIdentifier(value: unknown): string {
  if (typeof value !== 'number') return readText(value);
  if (!Number.isSafeInteger(value)) throw fault('no id that can be read exactly; put it in quotes');
  return String(value);
}

/** May be empty, and need not be quoted. */
export const plainText = kind((value) => (value === '' ? '' : readIdentifier(value)));

/** Words are read too: what comes from the environment is always text. */
export const flag = kind((value) => {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw fault('neither true nor false');
});

export const price = decimal(Number.MAX_VALUE, 'not a number from 0');

/** A part of a whole, from none to all of it. */
export const share = decimal(1, 'not a number from 0 to 1');

function decimal(most: number, wrong: string): Kind<number> {
  return kind((value) => {
    const number = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
    if (typeof number === 'number' && number >= 0 && number <= most) return number;
    throw fault(wrong);
  });
}

/** Digits in quotes are read too: what comes from the environment is always text. */
export function whole(least: number, most: number = Number.MAX_SAFE_INTEGER): Kind<number> {
  return kind((value) => {
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    const fits = typeof number === 'number' && Number.isSafeInteger(number) && number >= least && number <= most;
    if (fits) return number;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw fault(`not a whole number ${range}`);
  });
}

export function oneOf<const T extends string>(...names: readonly T[]): Kind<T> {
  return kind((value) => {
    const found = names.find((name) => name === value);
    if (found !== undefined) return found;
    const nearest = typeof value === 'string' ? `; did you mean "${nearestName(value, names)}"?` : '';
    throw fault(`none of ${names.join(', ')}${nearest}`);
  });
}

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 };

/** Written exactly, in the largest unit that has no remainder. */
function durationText(ms: number): string {
  const unit = Object.entries(UNIT_MS).find(([, length]) => ms > 0 && ms % length === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

export function duration(leastMs = 1, mostMs = MAX_DURATION_MS): Kind<number, 'Ms'> {
  return {
    read: (value) => {
      const ms = parsedDuration(value);
      if (ms < leastMs) throw fault('too short: it must be more than 0');
      if (ms > mostMs) throw fault(`too long: at most ${mostMs / 86_400_000}d`);
      return ms;
    },
    write: durationText,
    secrecy: 'none',
    unit: 'Ms',
  };
}

/** A duration that something waits for. */
export function timer(leastMs = 1): Kind<number, 'Ms'> {
  return duration(leastMs, MAX_TIMER_MS);
}

function parsedDuration(value: unknown): number {
  try {
    return parseDuration(value as string);
  } catch (thrown) {
    throw fault(`${faultOf(thrown).message}; durations look like 500ms, 90s, 30m, 24h or 7d`);
  }
}

const UNIT_BYTES = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 } as const;

export const size: Kind<number> = {
  ...kind((value) => {
    const [, count, unit] = /^(\d+)(B|KB|MB|GB)$/.exec(typeof value === 'string' ? value : '') ?? [];
    const bytes = Number(count) * UNIT_BYTES[unit as keyof typeof UNIT_BYTES];
    if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
    throw fault('not a size; sizes look like 512KB, 256MB or 1GB');
  }),
  write: (bytes) => {
    const [unit, length] = Object.entries(UNIT_BYTES).findLast(([, each]) => bytes % each === 0) ?? ['B', 1];
    return `${bytes / length}${unit}`;
  },
};

/** An address that may hold a password. */
export function address(inner: Kind<string>): Kind<string> {
  return { ...inner, secrecy: 'address' };
}

/** Text of a certain form; any other is refused with the sentence `wrong`. */
export function textLike(fits: (text: string) => boolean, wrong: string, of: Kind<string> = text): Kind<string> {
  return kind((value, context) => {
    const written = of.read(value, context);
    if (fits(written)) return written;
    throw fault(wrong);
  });
}

export const webAddress = address(
  textLike(
    (url) => /^https?:$/.test(URL.parse(url)?.protocol ?? ''),
    'no address that begins with http:// or https://',
  ),
);

export const origin = textLike(
  (url) => URL.parse(url)?.origin === url,
  'no origin; origins look like https://example.org or http://localhost:3000, without a path',
  webAddress,
);

export const hostName = textLike(
  (host) => /^[A-Za-z0-9.:_%-]+$/.test(host),
  'no address to listen on, such as 127.0.0.1, ::1 or 0.0.0.0; the port has its own key',
);

export function isShortName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name);
}

export const shortName = textLike(isShortName, 'no name: letters, digits, ".", "_" and "-", at most 64');

function isScalar(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}
