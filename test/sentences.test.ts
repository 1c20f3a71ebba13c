import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../', import.meta.url));
const page = readFileSync(`${root}docs/sentences.md`, 'utf8');

/**
 * Where people are spoken to: in chats, terminals, on the page, and by the hints of errors. What the agent reads and what
 * describes HTTP are not among them; lines of the log begin with a small letter.
 */
const SPEAKERS = [
  'src/{turns,commands,people,outbound,inbound,gateway,cron,engine,events,errors}/*.ts',
  'src/{cli,platforms,extensions}/**/*.ts',
  'src/space/page/**/*.{ts,tsx}',
];

/** Words by which a sentence is about the future. */
const PROMISE =
  /\b(?:will|again|when|until|unless|goes? on|told|by itself|waits?|answered|next message|brings?|begins?|later|kept|afterwards|retried|in a moment|settles|counts? (?:for|from)|any more|any longer|asks again)\b/;

interface Sentence {
  readonly text: string;
  readonly file: string;
}

/** What `-h` shows of a command: documentation, not an answer. */
const HELP = /\.(?:description|summary|addHelpText|option|argument)\((?:'after', )?\s*(?:'(?:[^'\\\n]|\\.)*'|`[^`]*`)/g;
const LITERAL = /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;

/** Strings of a program, and the text between the tags of a page. */
function textsIn(file: string, bare: string): string[] {
  const literals = [...bare.matchAll(LITERAL)].map(([, plain = '', double = '', template = '']) => {
    return plain || double || template;
  });
  // A text that begins with a line break stands below a help text.
  const answers = literals.filter((text) => !/^(?:\n|\\n)/.test(text));
  if (!file.endsWith('.tsx')) return answers;
  return [...answers, ...[...bare.matchAll(/>([^<>{}]+)</g)].map(([, text = '']) => text.replace(/\s+/g, ' '))];
}

/** The sentences of a file: whole ones, with `…` for what is filled in. */
function sentencesIn(file: string, code: string): Sentence[] {
  const bare = code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<=^|\s)\/\/.*$/gm, '');
  return textsIn(file, bare.replace(HELP, ''))
    .map((text) => text.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…'))
    .map((text) => ({ text: text.replaceAll("\\'", "'").trim(), file }))
    .filter(({ text }) => /^[A-Z…“]/.test(text) && text.split(' ').length > 3);
}

function allSentences(): Sentence[] {
  const files = SPEAKERS.flatMap((pattern) => globSync(pattern, { cwd: root }));
  const sources = files.filter((file) => !/\.test\.tsx?$/.test(file));
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

  test.each([
    ['src/turns/texts.ts', "export const NEW = 'The harbour is shown when the fog lifts.';"],
    ['src/cli/commands/send.ts', 'const NEW = "The harbour\'s light comes again";'],
    ['src/errors/codes.ts', "harbour_closed: 'The harbour is closed. It will be opened.',"],
    ['src/space/page/views/panel.tsx', 'return <p class="notice">\n  The harbour waits\n  for you.\n</p>;'],
  ])('a new promise is noticed in %s', (file, code) => {
    expect(sentencesIn(file, code).filter(({ text }) => PROMISE.test(text))).toHaveLength(1);
  });

  test('what a command says of itself is documentation', () => {
    const code = "command.description('Opens the harbour again.').addHelpText('after', '\\nThe harbour opens again.')";
    expect(sentencesIn('src/cli/commands/send.ts', code)).toEqual([]);
  });
});
