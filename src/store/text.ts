import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_TEXT_CHARS } from './limits.ts';

/**
 * Text as both engines can keep it: lone surrogates (they have no UTF-8) and NUL (PostgreSQL has none) become U+FFFD.
 * Too long a text is refused rather than cut.
 */
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
