import { describe, expect, test } from 'vitest';
import { type Inline, parseBlocks, parseInline, splitBlocks } from './markdown.ts';

const link = (href: string, ...inside: Inline[]): Inline => ({ type: 'link', href, inside });

describe('words in a line', () => {
  test('are strong, slanted, struck out or code', () => {
    expect(parseInline('a **b *c*** _d_ ~~e~~ `f*g*`')).toEqual([
      'a ',
      { type: 'strong', inside: ['b ', { type: 'em', inside: ['c'] }] },
      ' ',
      { type: 'em', inside: ['d'] },
      ' ',
      { type: 'del', inside: ['e'] },
      ' ',
      { type: 'code', text: 'f*g*' },
    ]);
  });

  test('with marks that mean nothing stay as they are', () => {
    const plain = [
      '2 * 3 * 4',
      'snake_case_name',
      'a ** b',
      '`open',
      '[a](b c)',
      '* *',
      '**',
      '~~~',
      '2*3',
      '<b>a</b>',
    ];
    for (const text of plain) expect(parseInline(text)).toEqual([text]);
    expect(parseInline('\\*not slanted\\*')).toEqual(['*not slanted*']);
  });

  test('lead to the web and nowhere else', () => {
    expect(parseInline('[a **b**](https://a.example/x_(y))')).toEqual([
      link('https://a.example/x_(y)', 'a ', { type: 'strong', inside: ['b'] }),
    ]);
    for (const href of [
      'javascript:alert(1)',
      'JaVaScRiPt:x',
      'data:text/html,x',
      '//a.example',
      '/v1',
      'vbscript:x',
    ]) {
      expect(parseInline(`[a](${href})`)).toEqual([`[a](${href})`]);
    }
    expect(parseInline('java\tscript: [a](java\tscript:x)')).toEqual(['java\tscript: [a](java\tscript:x)']);
  });

  test('that are addresses are links, without what ends the sentence', () => {
    expect(parseInline('See https://a.example/b?c=d_e_f, or (http://b.example).')).toEqual([
      'See ',
      link('https://a.example/b?c=d_e_f', 'https://a.example/b?c=d_e_f'),
      ', or (',
      link('http://b.example/', 'http://b.example'),
      ').',
    ]);
    expect(parseInline('xhttp://a.example ftp://b.example')).toEqual(['xhttp://a.example ftp://b.example']);
  });
});

describe('blocks', () => {
  test('are paragraphs, headings, rules and quotes', () => {
    expect(parseBlocks('# One\ntwo\nthree\n\n---\n> four\n> > five')).toEqual([
      { type: 'heading', level: 1, inside: ['One'] },
      { type: 'paragraph', inside: ['two\nthree'] },
      { type: 'rule' },
      {
        type: 'quote',
        blocks: [
          { type: 'paragraph', inside: ['four'] },
          { type: 'quote', blocks: [{ type: 'paragraph', inside: ['five'] }] },
        ],
      },
    ]);
  });

  test('of code keep what is in them, also when they are not finished', () => {
    expect(parseBlocks('```ts\n# a\n\n**b**\n```\nc')).toEqual([
      { type: 'code', language: 'ts', text: '# a\n\n**b**' },
      { type: 'paragraph', inside: ['c'] },
    ]);
    expect(parseBlocks('~~~\na\n```')).toEqual([{ type: 'code', language: '', text: 'a\n```' }]);
  });

  test('that are lists hold lists, and code', () => {
    expect(parseBlocks('- a\n  - b\n- c\n\n  ```\n  d\n  ```\n\ne')).toEqual([
      {
        type: 'list',
        start: null,
        items: [
          [
            { type: 'paragraph', inside: ['a'] },
            { type: 'list', start: null, items: [[{ type: 'paragraph', inside: ['b'] }]] },
          ],
          [
            { type: 'paragraph', inside: ['c'] },
            { type: 'code', language: '', text: 'd' },
          ],
        ],
      },
      { type: 'paragraph', inside: ['e'] },
    ]);
    expect(parseBlocks('3. a\n4. b')).toMatchObject([{ type: 'list', start: 3, items: [{}, {}] }]);
    expect(parseBlocks('It was in\n1999. A year.')).toMatchObject([{ type: 'paragraph' }]);
  });

  test('that are tables have as many cells as their head', () => {
    expect(parseBlocks('| a | b |\n|---|:-:|\n| 1 | **2** | 3 |\n| 4 |\n\nafter')).toEqual([
      {
        type: 'table',
        head: [['a'], ['b']],
        rows: [
          [['1'], [{ type: 'strong', inside: ['2'] }]],
          [['4'], []],
        ],
      },
      { type: 'paragraph', inside: ['after'] },
    ]);
    expect(parseBlocks('a | b\nc | d')).toMatchObject([{ type: 'paragraph' }]);
  });

  test('give the same read one by one as read together', () => {
    const text = 'a\n\n- b\n\n- c\n\n  d\n\n```\ne\n\nf\n```\ng\n\n| h |\n|---|\n| i |\n\n> j';
    expect(splitBlocks(text).flatMap((part) => parseBlocks(part))).toEqual(parseBlocks(text));
    expect(splitBlocks(text)).toHaveLength(6);
  });
});

test('no text takes long, whatever is in it', () => {
  const began = performance.now();
  const pieces = ['*', '_', '`', '[', '](', '**a ', '> ', '- ', '|', '~~', '```\n', 'http://', '1. ', '\\', '  - a\n'];
  for (const piece of pieces) {
    const text = piece.repeat(Math.ceil(100_000 / piece.length));
    for (const part of splitBlocks(text)) parseBlocks(part);
  }
  expect(performance.now() - began).toBeLessThan(15_000);
});
