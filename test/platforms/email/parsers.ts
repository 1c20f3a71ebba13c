import { idsIn } from '../../../src/platforms/email/head.ts';
import { htmlText } from '../../../src/platforms/email/html-text.ts';
import { isForward, withoutQuotes, withoutSignature } from '../../../src/platforms/email/quotes.ts';
import { renderHtml } from '../../../src/platforms/email/render.ts';
import { readResults } from '../../../src/platforms/email/trust.ts';

/** Longer texts are parted before. */
const MOST_TEXT = 100_000;
/** Of a longer mail the rest is not read. */
const MOST_READ = 256 * 1024;

/** What of Email reads texts of people and models. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Email shows it': (text) => renderHtml(text.slice(0, MOST_TEXT)),
  'a mail without what it quotes': (text) => {
    const read = text.slice(0, MOST_READ);
    return [isForward(null, read), withoutSignature(withoutQuotes(read))];
  },
  'the text of an HTML mail': (text) => [htmlText(text, 'kept'), htmlText(text, 'left out')],
  'the ids that a mail refers to': idsIn,
  'the results of a mail server': readResults,
};
