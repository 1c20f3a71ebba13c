import { expect, test } from 'vitest';
import { fastest } from '../../../../test/support/fastest.ts';
import { Measures, plainText } from './labels.ts';

test('an ordinary label stays as it is', () => {
  expect(plainText('Ada Lovelace', 40)).toBe('Ada Lovelace');
  expect(plainText('نور', 40)).toBe('نور');
  expect(plainText('Μοῖραι 👩‍👩‍👧', 40)).toBe('Μοῖραι 👩‍👩‍👧');
});

test('what would turn, hide or break the line is gone', () => {
  expect(plainText('a\u202eb\u2066c\u200bd\u0007e\nf\u0000', 40)).toBe('a b c d e f');
  expect(plainText('\ud800x\udfff', 40)).toBe('x');
  expect(plainText('\u202e\u200b\u0000', 40)).toBe('');
});

test('marks piled on one letter are cut to two', () => {
  expect(plainText(`z${'\u0301'.repeat(100)}`, 40).length).toBeLessThanOrEqual(3);
});

test('a label of ten thousand characters costs no more than a short one', () => {
  const long = plainText('👩‍👩‍👧'.repeat(2000), 20);
  expect([...new Intl.Segmenter().segment(long)].length).toBeLessThanOrEqual(20);
  expect(long.endsWith('…')).toBe(true);
  const ms = fastest(10, () => {
    for (let round = 0; round < 10; round++) plainText('\u202e'.repeat(10_000), 20);
  });
  expect(ms).toBeLessThan(50);
});

test('a text is cut to the space there is, and measured once', () => {
  let measured = 0;
  const measures = new Measures((text) => {
    measured++;
    return text.length * 10;
  });
  expect(measures.fit('Lachesis', 'font', 100)).toBe('Lachesis');
  expect(measures.fit('Lachesis', 'font', 50)).toBe('Lach…');
  expect(measures.fit('Lachesis', 'font', 5)).toBe('');
  const before = measured;
  measures.fit('Lachesis', 'font', 50);
  expect(measured).toBe(before);
});
