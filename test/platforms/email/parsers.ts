import { idsIn } from '../../../src/platforms/email/head.ts';
import { htmlText } from '../../../src/platforms/email/html-text.ts';
import { isForward, withoutQuotes, withoutSignature } from '../../../src/platforms/email/quotes.ts';
import { renderHtml } from '../../../src/platforms/email/render.ts';
import { readResults } from '../../../src/platforms/email/trust.ts';

/** What of Email reads texts of people and models. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Email shows it': renderHtml,
  'a mail without what it quotes': (text) => [isForward(null, text), withoutSignature(withoutQuotes(text))],
  'the text of an HTML mail': (text) => [htmlText(text, 'kept'), htmlText(text, 'left out')],
  'the ids that a mail refers to': idsIn,
  'the results of a mail server': readResults,
};
