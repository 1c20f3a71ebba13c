import { checkSync } from 'recheck';
import { beforeAll, expect, test } from 'vitest';
import { type Expression, expressionsIn, findExpressions } from './expressions.ts';

/** Files that make expressions out of text, and why they may. */
const MADE: Readonly<Record<string, string>> = {
  'src/api/app.ts': 'made of our own routes; a segment of a path stands between two slashes',
  'src/platforms/telegram/parse.ts': "the bot's own name, escaped, with nothing in it that repeats",
};

const { literal, made } = findExpressions();

beforeAll(() => {
  // Within this process: the other ways start a Java machine or a program of its own.
  process.env.RECHECK_SYNC_BACKEND = 'pure';
});

/**
 * Whether an expression needs to be analysed. Without a part that repeats without a limit the time is limited too. One
 * such part, of a single sign, takes linear time where the match can begin at one place only, or where it ends the match.
 */
function needsAnalysis({ pattern, flags }: Expression): boolean {
  const shape = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
  // Of a group that repeats, each time may be another way to read the same, also where their number is limited.
  if (/\)(?:[*+]|\{\d*[,\d]*\})/.test(shape)) return true;
  const [first, ...more] = shape.matchAll(/[*+]|\{\d+,\}/g);
  if (first === undefined) return false;
  if (more.length > 0) return true;
  const begins = shape.startsWith('^') && !flags.includes('m') && !hasAlternatives(shape);
  return !begins && first.index + first[0].length < shape.length;
}

/** Whether a `|` stands outside of all groups. */
function hasAlternatives(shape: string): boolean {
  let depth = 0;
  for (const sign of shape) {
    if (sign === '(') depth += 1;
    else if (sign === ')') depth -= 1;
    else if (sign === '|' && depth === 0) return true;
  }
  return false;
}

/** Where it has to guess, the checker finds a fault where there is none one time in many; a real one it finds every time. */
const TRIES = 3;

function faultOf({ pattern, flags, files }: Expression): string | null {
  let why = '';
  for (let tries = 0; tries < TRIES; tries += 1) {
    const found = checkSync(pattern, flags, { timeout: 60_000 });
    if (found.status === 'safe') return null;
    why = found.status === 'vulnerable' ? `${found.complexity.summary}: ${found.attack.pattern}` : found.status;
  }
  return `/${pattern}/${flags} in ${files.join(', ')}: ${why}`;
}

test('every regular expression of the sources takes a time that grows with the text and no faster', () => {
  expect(literal.length).toBeGreaterThan(100);
  expect(
    literal
      .filter(needsAnalysis)
      .map(faultOf)
      .filter((fault) => fault !== null),
  ).toEqual([]);
}, 300_000);

test('the analysis finds expressions that take exponential, cubic or quadratic time', () => {
  const bad = [
    '^\\s*\\|?\\s*:?-+:?\\s*(\\|\\s*:?-*:?\\s*)*$',
    '^#\\s+(.*?)(?:\\s+#+)?\\s*$',
    '<!--[\\s\\S]*?-->',
    '\\/+$',
    '(?:a|aa|a?b){0,60}c',
  ];
  for (const pattern of bad) {
    const expression = { pattern, flags: '', files: [] };
    expect([pattern, needsAnalysis(expression), faultOf(expression)]).toEqual([pattern, true, expect.any(String)]);
  }
});

test('expressions are found however they are written', () => {
  const makers = [
    'new RegExp(x)',
    'RegExp(x)',
    'new globalThis.RegExp(x)',
    "t.match('a+')",
    't.search(`a+`)',
    "t['matchAll']('a' + x)",
    't?.match(String(x))',
  ];
  for (const code of makers) expect([code, expressionsIn([['x.ts', code]]).made]).toEqual([code, ['x.ts']]);
  for (const code of ["t.split('a+')", "t.replace('a+', '')", "t.replaceAll('a+', '')", 't.match(KNOWN)']) {
    expect([code, expressionsIn([['x.ts', code]])]).toEqual([code, { literal: [], made: [] }]);
  }
  const page = expressionsIn([['src/space/page/x.tsx', '<p title={t.replace(/a+$/, "")}>{/b/.test(t)}</p>']]);
  expect(page.literal.map(({ pattern }) => pattern)).toEqual(['a+$', 'b']);
  expect(literal.some(({ files }) => files.some((file) => file.startsWith('src/space/page/')))).toBe(true);
});

test('expressions are made out of text in the reviewed files only', () => {
  expect(made).toEqual(Object.keys(MADE));
});
