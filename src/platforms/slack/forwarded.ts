import { type Fields, fieldsOf, listOf, nameOf, textOf } from '../fields.ts';
import { sanitize } from '../outside-text.ts';
import { decodeText, type Self } from './text.ts';

const MOST_FORWARDED = 10;

/** The messages that a message passes on: Slack has them beside its text, which may be empty. Previews are none of them. */
export function forwardedIn(message: Fields): readonly Fields[] {
  return listOf(message.attachments)
    .slice(0, MOST_FORWARDED)
    .flatMap((each) => {
      const fields = fieldsOf(each);
      return fields?.is_share === true ? [fields] : [];
    });
}

/** What a message that is passed on says, and who said it; nothing for one without words. */
export function forwardedWords(forwarded: Fields, self: Pick<Self, 'userId' | 'name'>): string {
  const words = decodeText(textOf(forwarded.text) || textOf(forwarded.fallback) || '', self);
  const author = nameOf(forwarded.author_name);
  return words === '' ? '' : `[forwarded${author === null ? '' : ` from ${sanitize(author)}`}] ${words}`;
}
