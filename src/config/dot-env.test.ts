import { expect, test } from 'vitest';
import { parseDotEnv } from './dot-env.ts';

test.each([
  ['A=1', '1'],
  ['A = spaced out ', 'spaced out'],
  ['export A=1', '1'],
  ['  A=1\r', '1'],
  ['A=', ''],
  ['A= # nothing', ''],
  ['A=p#ss # a comment', 'p#ss'],
  ['A="two words" # a comment', 'two words'],
  ['A="a\\nb \\"c\\" \\\\ # d"', 'a\nb "c" \\ # d'],
  ['A=\'a\\n $B # "c"\'', 'a\\n $B # "c"'],
  ['A=x=y==', 'x=y=='],
  ['A=1\nA=2', '2'],
])('%j gives %j', (text, expected) => {
  expect(parseDotEnv('.env', `# before\n\n${text}\n`)).toEqual({ values: { A: expected }, problems: [] });
});

test.each([
  ['A', '', 'this is not NAME=value'],
  ['1A=x', '', 'this is not NAME=value'],
  ['OPENAI_API_KEY sk-secret', '', 'this is not NAME=value'],
  ['A="open secret', 'A', 'the quotes do not end where the line ends'],
  ["A='secret'more", 'A', 'the quotes do not end where the line ends'],
])('%j is a problem, whose words are not repeated', (text, path, message) => {
  const { values, problems } = parseDotEnv('.env', `OK=1\n${text}`);
  expect(values).toEqual({ OK: '1' });
  expect(problems).toEqual([{ file: '.env', line: 2, column: 1, path, message, nearest: null }]);
});
