import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../', import.meta.url));
const page = readFileSync(`${root}docs/sentences.md`, 'utf8');

/** Where the gateway speaks to people. Help texts are documentation, and lines of the log begin with a small letter. */
const SPEAKERS = [
  'src/turns/*.ts',
  'src/commands/*.ts',
  'src/people/*.ts',
  'src/outbound/*.ts',
  'src/inbound/*.ts',
  'src/gateway/*.ts',
  'src/cli/{chat,sessions,gateway}/*.ts',
];

/** Words by which a sentence is about the future. */
const PROMISE =
  /\b(?:will|again|when|until|goes? on|told|by itself|waits?|answered|next message|brings?|later|kept|afterwards)\b/;

interface Sentence {
  readonly text: string;
  readonly file: string;
}

/** The sentences of a file: whole ones, with `…` for what is filled in. */
function sentencesIn(file: string, code: string): Sentence[] {
  const bare = code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<=^|\s)\/\/.*$/gm, '');
  const literals = [...bare.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)];
  return literals
    .map(([, plain = '', template = '']) => (plain || template).replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…'))
    .map((text) => ({ text: text.replaceAll("\\'", "'").trim(), file }))
    .filter(({ text }) => /^[A-Z…“]/.test(text) && /[.?!](?: |$)/.test(text) && text.split(' ').length > 3);
}

function allSentences(): Sentence[] {
  const files = SPEAKERS.flatMap((pattern) => globSync(pattern, { cwd: root }));
  const sources = files.filter((file) => !file.endsWith('.test.ts'));
  return sources.flatMap((file) => sentencesIn(file, readFileSync(`${root}${file}`, 'utf8')));
}

/** The rows of a table of the page, cell by cell. */
function rowsOf(heading: string): string[][] {
  const lines = page.slice(page.indexOf(heading)).split('\n');
  const head = lines.findIndex((line) => line.startsWith('|---'));
  const end = lines.findIndex((line, i) => i > head && !line.startsWith('|'));
  return lines.slice(head + 1, end).map((line) => line.slice(2, -2).split(' | '));
}

const promises = rowsOf('# What the gateway promises');
const others = rowsOf('## Words that promise nothing');

describe('docs/sentences.md', () => {
  test('has every sentence with a word about the future that the gateway says', () => {
    const listed = new Set([...promises, ...others].map(([text, file]) => `${file}: ${text}`));
    const said = allSentences().filter(({ text }) => PROMISE.test(text));
    expect(said.length).toBeGreaterThan(20);
    expect(said.map(({ text, file }) => `${file}: ${text}`).filter((one) => !listed.has(one))).toEqual([]);
  });

  test('has no sentence that the gateway does not say', () => {
    for (const [text = '', file = ''] of [...promises, ...others]) {
      const said = sentencesIn(file, readFileSync(`${root}${file}`, 'utf8'));
      expect(said.map((one) => one.text)).toContain(text);
    }
  });

  test.each(promises.map(([text, , shown = '']) => [text, shown]))('names a test that there is: %s', (_, shown) => {
    for (const one of shown.split('; test/').map((part, i) => (i === 0 ? part : `test/${part}`))) {
      const [file = '', ...title] = one.split(': ');
      const code = readFileSync(`${root}${file}`, 'utf8');
      expect(code.replaceAll("\\'", "'")).toContain(`'${title.join(': ')}'`);
    }
  });

  test('a new promise is noticed', () => {
    const added = sentencesIn('src/turns/texts.ts', "export const NEW = 'The harbour is shown when the fog lifts.';");
    expect(added.filter(({ text }) => PROMISE.test(text))).toHaveLength(1);
  });
});
