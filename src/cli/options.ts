import { MoiraiError } from '../errors/moirai-error.ts';
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
