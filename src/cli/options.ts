import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { parseDuration } from '../lifecycle/duration.ts';
import { nearestName } from '../lifecycle/events.ts';
import { MAX_PAGE } from '../store/limits.ts';

export const DEFAULT_PAGE = 50;

export const parseLimit = whole('--limit', 1, MAX_PAGE);

/** The option `--limit` of a listing. */
export const LIMIT = ['--limit <n>', `at most so many (default: ${DEFAULT_PAGE}, at most 500)`, parseLimit] as const;

/** Reads an option that is a whole number between two others. */
export function whole(option: string, least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new MoiraiError('bad_input', `${option} is a whole number from ${least} to ${most}, not "${text}"`);
  };
}

/** Reads a list with commas. */
export function parseList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** Reads a list whose words are known; any other one is refused with the nearest of them. */
export function parseNames(option: string, text: string, known: readonly string[]): string[] {
  const names = parseList(text);
  for (const name of names) {
    if (known.includes(name)) continue;
    throw new MoiraiError(
      'bad_input',
      `${option} has no "${name}"; did you mean "${nearestName(name, known)}"? There are ${known.join(', ')}`,
    );
  }
  return names;
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Reads a time: ISO 8601, or how long ago as a duration. */
export function parseSince(text: string, now: number): number {
  if (ISO_TIME.test(text) && !Number.isNaN(Date.parse(text))) return Date.parse(text);
  try {
    return now - parseDuration(text);
  } catch (thrown) {
    if (!hasCode(thrown, 'bad_duration')) throw thrown;
    throw new MoiraiError(
      'bad_input',
      `--since is a time such as 2026-08-01T12:00:00Z or how long ago, such as 24h, not "${text}"`,
      { cause: thrown },
    );
  }
}
