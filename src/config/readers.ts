import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { MAX_DURATION_MS, parseDuration } from '../lifecycle/duration.ts';
import { assertPattern, nearestName } from '../lifecycle/events.ts';
import { DEFAULT_RESET_RULES, type ResetPolicy, validatePolicy } from '../lifecycle/reset-policy.ts';

/** What a value of the file means. Throws `bad_input` with the end of a sentence that begins "<the value> is". */
export type Reader<T> = (value: unknown) => T;

/** Node's timers know no longer delay: whatever is waited for has to fit. */
export const MAX_TIMER_MS = 24 * 86_400_000;

export function fault(text: string): MoiraiError {
  return new MoiraiError('bad_input', text);
}

export function text(value: unknown): string {
  if (typeof value !== 'string') throw fault(isScalar(value) ? 'not text; put it in quotes' : 'not text');
  if (value.trim() === '') throw fault('empty');
  return value;
}

/** An id as platforms give them. Many are numbers and are written without quotes. */
export function identifier(value: unknown): string {
  if (typeof value !== 'number') return text(value);
  if (!Number.isSafeInteger(value)) throw fault('no id that can be read exactly; put it in quotes');
  return String(value);
}

export function optional<T>(read: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : read(value));
}

/** Words are read too: what comes from the environment is always text. */
export function flag(value: unknown): boolean {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw fault('neither true nor false');
}

export function price(value: unknown): number {
  const number = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isFinite(number) && number >= 0) return number;
  throw fault('not a number from 0');
}

/** A part of a whole, from none to all of it. */
export function share(value: unknown): number {
  const number = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && number >= 0 && number <= 1) return number;
  throw fault('not a number from 0 to 1');
}

/** Digits in quotes are read too: what comes from the environment is always text. */
export function whole(least: number, most: number): Reader<number> {
  return (value) => {
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    const fits = typeof number === 'number' && Number.isSafeInteger(number) && number >= least && number <= most;
    if (fits) return number;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw fault(`not a whole number ${range}`);
  };
}

export function oneOf<T extends string>(...names: readonly T[]): Reader<T> {
  return (value) => {
    const found = names.find((name) => name === value);
    if (found !== undefined) return found;
    const nearest = typeof value === 'string' ? `; did you mean "${nearestName(value, names)}"?` : '';
    throw fault(`none of ${names.join(', ')}${nearest}`);
  };
}

/** Whatever another part of Moirai says against a value, without the value and where it stands. */
function faultOf(thrown: unknown): string {
  return MoiraiError.wrap(thrown).message.replace(/^(?:reset\.\w+: )?(?:"(?:[^"\\]|\\.)*"|[^" ]+) is /, '');
}

export function duration(leastMs = 1, mostMs = MAX_DURATION_MS): Reader<number> {
  return (value) => {
    const ms = parsedDuration(value);
    if (ms < leastMs) throw fault('too short: it must be more than 0');
    if (ms > mostMs) throw fault(`too long: at most ${mostMs / 86_400_000}d`);
    return ms;
  };
}

function parsedDuration(value: unknown): number {
  try {
    return parseDuration(value as string);
  } catch (thrown) {
    throw fault(`${faultOf(thrown)}; durations look like 500ms, 90s, 30m, 24h or 7d`);
  }
}

const UNIT_BYTES = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 } as const;

export function size(value: unknown): number {
  const [, count, unit] = /^(\d+)(B|KB|MB|GB)$/.exec(typeof value === 'string' ? value : '') ?? [];
  const bytes = Number(count) * UNIT_BYTES[unit as keyof typeof UNIT_BYTES];
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw fault('not a size; sizes look like 512KB, 256MB or 1GB');
}

/** One field of a reset policy: the lifecycle itself says what it takes. */
export function policyField<F extends keyof ResetPolicy>(field: F): Reader<ResetPolicy[F]> {
  return (value) => {
    const policy: Record<keyof ResetPolicy, unknown> = { ...DEFAULT_RESET_RULES.reset, [field]: value };
    try {
      validatePolicy(policy);
      return policy[field];
    } catch (thrown) {
      throw fault(faultOf(thrown));
    }
  };
}

export function eventPattern(value: unknown): string {
  const pattern = text(value);
  try {
    assertPattern(pattern);
    return pattern;
  } catch (thrown) {
    const nearest = hasCode(thrown, 'unknown_event') ? `; did you mean "${thrown.details.nearest}"?` : '';
    throw fault(`no event${nearest}`);
  }
}

export function webAddress(value: unknown): string {
  const address = text(value);
  if (/^https?:$/.test(urlOf(address)?.protocol ?? '')) return address;
  throw fault('no address that begins with http:// or https://');
}

export function origin(value: unknown): string {
  const address = webAddress(value);
  if (urlOf(address)?.origin === address) return address;
  throw fault('no origin; origins look like https://example.org or http://localhost:3000, without a path');
}

export function storeUrl(value: unknown): string {
  const url = text(value);
  if (/^sqlite:./.test(url) || (/^postgres(ql)?:\/\//.test(url) && urlOf(url) !== null)) return url;
  throw fault('no store; use sqlite:<file> or postgres://user:password@host/database');
}

function urlOf(address: string): URL | null {
  return URL.canParse(address) ? new URL(address) : null;
}

export function hostName(value: unknown): string {
  const host = text(value);
  if (/^[A-Za-z0-9.:_%-]+$/.test(host)) return host;
  throw fault('no address to listen on, such as 127.0.0.1, ::1 or 0.0.0.0; the port has its own key');
}

export function signingSecret(value: unknown): string {
  const secret = text(value);
  if (/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)) return secret;
  throw fault('not whsec_ followed by base64');
}

export function shortName(value: unknown): string {
  const name = text(value);
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return name;
  throw fault('no name: letters, digits, ".", "_" and "-", at most 64');
}

function isScalar(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}
