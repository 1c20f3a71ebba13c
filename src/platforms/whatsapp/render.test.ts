import { describe, expect, test } from 'vitest';
import { captionOf, parameterOf, REST_WAITS, wordsOf } from './compose.ts';
import { renderMarks } from './render.ts';

describe('Markdown becomes the marks of WhatsApp:', () => {
  test.each([
    ['**bold**', '*bold*'],
    ['__bold__', '*bold*'],
    ['*italic* and _italic_', '_italic_ and _italic_'],
    ['***both***', '*_both_*'],
    ['~~struck~~', '~struck~'],
    ['`code`', '```code```'],
    ['``a ``` b``', 'a ``` b'],
    ['# A heading', '*A heading*'],
    ['## **Bold** heading', '*Bold heading*'],
    ['#', '#'],
    ['- item\n* item\n+ item', '• item\n• item\n• item'],
    ['  - [x] done\n  - [ ] open', '  ☑ done\n  ☐ open'],
    ['1. one', '1. one'],
    ['> quoted\n> > deeper', '> quoted\n> deeper'],
    ['> - **item**', '> • *item*'],
    ['---', '———'],
    ['[words](https://e.org/a)', 'words (https://e.org/a)'],
    ['[https://e.org](https://e.org)', 'https://e.org'],
    ['see https://e.org/a_b_c', 'see https://e.org/a_b_c'],
    ['![picture](https://e.org/p.png)', 'picture (https://e.org/p.png)'],
    ['snake_case_name and 2*3*4', 'snake_case_name and 2*3*4'],
    ['\\*no mark\\*', '*no mark*'],
    ['**bold *and italic* words**', '*bold _and italic_ words*'],
    ['```ts\nconst a = 1;\n```', '```\nconst a = 1;\n```'],
    ['~~~\n**as it is**\n~~~', '```\n**as it is**\n```'],
    ['```\nnever closed', '```\nnever closed\n```'],
    ['```\n```', ''],
    ['| a | b |\n|---|---|\n| 1 | 2 |\nbehind', '```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nbehind'],
    ['a < b && c > d', 'a < b && c > d'],
    ['', ''],
  ])('%j', (markdown, expected) => {
    expect(renderMarks(markdown)).toBe(expected);
  });

  test('marks in marks of the same kind are left out, for they would end them', () => {
    expect(renderMarks('# One **two** three')).toBe('*One two three*');
  });
});

describe('a text', () => {
  test('that would show nothing goes as it is written', () => {
    expect(wordsOf('```\n```')).toBe('```\n```');
  });

  test('that only its marks make too long goes without them', () => {
    const text = '`x` '.repeat(1024).slice(0, 4096);
    expect(renderMarks(text).length).toBeGreaterThan(4096);
    expect(wordsOf(text)).toBe(text);
  });

  test('that is too long is refused', () => {
    expect(() => wordsOf('x'.repeat(4097))).toThrow(/more than 4096/);
  });

  test('stands under a file if it is short', () => {
    expect(captionOf('**x**')).toBe('*x*');
    expect(captionOf('x'.repeat(1025))).toBeNull();
  });

  test('goes into a template on one line', () => {
    const { text, whole } = parameterOf('# Title\n\nwords   and\t`code`\n\n```\na\nb\n```');
    expect(text).toBe('*Title* words and code a b');
    expect(whole).toBe(true);
  });

  test('that a template has no room for is cut, and says so', () => {
    const { text, whole } = parameterOf('word '.repeat(500));
    expect(text).toHaveLength(1024);
    expect(text.endsWith(REST_WAITS)).toBe(true);
    expect(whole).toBe(false);
    expect(parameterOf('😀'.repeat(600)).text.isWellFormed()).toBe(true);
  });
});
