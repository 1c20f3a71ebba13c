const FENCE = '```';

/** What people see of a text with the marks of WhatsApp: the marks are gone where they mark something. */
export function readMarks(text: string): string {
  const parts = text.split(FENCE);
  // A fence that nothing closes is text.
  const closed = parts.length % 2 === 1 ? parts : [...parts.slice(0, -2), parts.slice(-2).join(FENCE)];
  return closed.map((part, index) => (index % 2 === 1 ? part.replace(/^\n|\n$/g, '') : readWords(part))).join('');
}

function readWords(text: string): string {
  let words = text;
  for (const mark of ['*', '_', '~']) {
    const sign = RegExp.escape(mark);
    const marked = new RegExp(
      `(?<![\\p{L}\\p{N}])${sign}(?=\\S)([^\\n${sign}]+)(?<=\\S)${sign}(?![\\p{L}\\p{N}])`,
      'gu',
    );
    words = words.replace(marked, '$1');
  }
  return words;
}
