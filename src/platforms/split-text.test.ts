import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutText, type Measure, splitText } from './split-text.ts';

const telegram: Measure = { maxText: 4096, counts: 'utf16', markdown: true };

const sizes = {
  utf16: (text: string) => text.length,
  points: (text: string) => [...text].length,
  bytes: (text: string) => Buffer.byteLength(text),
};

const fragment = fc.oneof(
  fc.constantFrom(
    '\n',
    '\n\n',
    ' ',
    '```\n',
    '```ts\n',
    '~~~py\n',
    '`',
    '👩‍👩‍👧‍👦',
    '🇩🇪',
    'e\u0301',
    'word ',
    '\r\n',
    '````\n',
  ),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
);
const texts = fc.array(fragment, { maxLength: 120 }).map((parts) => parts.join(''));
const measures = fc.record({
  maxText: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 13, max: 400 })),
  counts: fc.constantFrom('utf16', 'points', 'bytes'),
  markdown: fc.boolean(),
});

describe('a long text', () => {
  test('is whole again when its pieces are joined without what mends fences, for every limit', () => {
    fc.assert(
      fc.property(texts, measures, (text, measure) => {
        const pieces = cutText(text, measure);
        expect(pieces.map(({ body }) => body).join('')).toBe(text);
        expect(pieces.every(({ body }) => body !== '')).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test('is in parts within the limit wherever one character fits', () => {
    fc.assert(
      fc.property(texts, measures, (text, measure) => {
        fc.pre(measure.maxText >= 4);
        for (const part of splitText(text, measure)) {
          expect(sizes[measure.counts](part)).toBeLessThanOrEqual(measure.maxText);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('is never cut inside a pair of surrogates', () => {
    fc.assert(
      fc.property(texts, measures, (text, measure) => {
        fc.pre(text.isWellFormed());
        expect(splitText(text, measure).every((part) => part.isWellFormed())).toBe(true);
      }),
    );
  });

  test('is never cut inside what people see as one character, if that fits into a message', () => {
    const family = '👩‍👩‍👧‍👦';
    for (const part of splitText(family.repeat(1000), telegram)) expect(part).toBe(family.repeat(part.length / 11));
    expect(splitText(family.repeat(3), { ...telegram, maxText: 5 }).join('')).toBe(family.repeat(3));
  });

  test('is cut between paragraphs, else between lines, else between words', () => {
    const measure = { ...telegram, maxText: 20 };
    expect(splitText('one two three\n\nfour\nfive six', measure)).toEqual(['one two three\n\n', 'four\nfive six']);
    expect(splitText('first line is long\nsecond line', measure)).toEqual(['first line is long\n', 'second line']);
    expect(splitText('words upon words upon words', measure)).toEqual(['words upon words ', 'upon words']);
  });

  test('closes a fence that is cut and opens it again with its language', () => {
    const code = Array.from({ length: 40 }, (_, line) => `const line${line} = ${line};`).join('\n');
    const parts = splitText(`Look:\n\n\`\`\`ts\n${code}\n\`\`\`\nDone.`, { ...telegram, maxText: 300 });
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) expect(part.match(/^```/gm)?.length).toBe(2);
    for (const part of parts.slice(1)) expect(part).toMatch(/^```ts\n\S/);
    expect(parts.at(-1)).toMatch(/\n```\nDone\.$/);
  });

  test('is cut before a fence rather than behind its first line', () => {
    const text = `${'word '.repeat(50)}\n\n\`\`\`js\nlet a = 1;\n${'let b = 2;\n'.repeat(10)}\`\`\``;
    const [first, second] = splitText(text, { ...telegram, maxText: 262 });
    expect(first).not.toContain('```');
    expect(second).toMatch(/^```js\nlet a/);
  });

  test('is not cut inside inline code', () => {
    expect(splitText('please run `npm run build` now', { ...telegram, maxText: 20 })).toEqual([
      'please run ',
      '`npm run build` now',
    ]);
  });

  test('of 12,000 characters with fences and emoji arrives in order, and quickly', () => {
    const block = `Some words 👩‍👩‍👧‍👦 and more 🇩🇪.\n\n\`\`\`python\n${'print("héllo 😀")\n'.repeat(60)}\`\`\`\n\n`;
    const text = block.repeat(Math.ceil(12_000 / block.length));
    const parts = splitText(text, telegram);
    expect(parts.length).toBeLessThan(6);
    expect(
      cutText(text, telegram)
        .map(({ body }) => body)
        .join(''),
    ).toBe(text);
    for (const part of parts) {
      expect(part.length).toBeLessThanOrEqual(4096);
      expect(part.isWellFormed()).toBe(true);
      expect((part.match(/^```/gm) ?? []).length % 2).toBe(0);
    }
    const started = performance.now();
    expect(splitText('x'.repeat(1_000_000), telegram)).toHaveLength(245);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  test('that is blank is one part, and a blank stretch is no part', () => {
    expect(splitText('', telegram)).toEqual([]);
    expect(splitText('   ', telegram)).toEqual(['   ']);
    expect(splitText(`a${' '.repeat(100)}b`, { ...telegram, maxText: 20 }).every((part) => part.trim() !== '')).toBe(
      true,
    );
  });
});
