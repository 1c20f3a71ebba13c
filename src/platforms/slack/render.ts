/** Cannot be seen, and parts what stands at its sides. */
const JOINER = '\u2060';
const BROADCAST = /<(?=!(?:channel|here|everyone|group|subteam)\b)/gi;
const UNFINISHED = /<(?:![a-z]{0,8})?$/i;

/**
 * A text as Slack's Markdown takes it: as models write it, since Slack reads Markdown itself. Only what would call a whole
 * channel calls nobody.
 */
export function renderMarkdown(markdown: string): string {
  return markdown.replace(BROADCAST, `<${JOINER}`);
}

/**
 * The beginning of a text that is still being written: what could become a call of a whole channel with the next letters
 * is left for later, so that what was shown is never wrong.
 */
export function renderBeginning(markdown: string): string {
  return renderMarkdown(markdown).replace(UNFINISHED, '');
}
