import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_TEXT_CHARS } from './limits.ts';

/**
 * A value with every text in it as both engines can keep it: lone surrogates (they have no UTF-8) and NUL (PostgreSQL
 * has none) become U+FFFD. Too long a text is refused rather than cut. Applied to all that enters the store, so that
 * its rows and its events say the same.
 */
export function storable<T>(value: T, what = 'the request'): T {
  if (typeof value === 'string') return storableText(value, what) as T;
  if (typeof value !== 'object' || value === null) return value;
  const changes: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) {
    const kept = storable<unknown>(part, name);
    if (kept !== part) changes[name] = kept;
  }
  if (Object.keys(changes).length === 0) return value;
  return Object.assign(Array.isArray(value) ? [...value] : { ...value }, changes) as T;
}

/** The same for one text. */
export function storableText(text: string, what: string): string {
  if (text.length > MAX_TEXT_CHARS) {
    throw new MoiraiError(
      'message_too_large',
      `${what} has ${text.length} characters; at most ${MAX_TEXT_CHARS} are kept`,
    );
  }
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\uFFFD') : wellFormed;
}
