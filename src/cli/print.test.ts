import { describe, expect, test } from 'vitest';
import { printable, relativeTime, shorten, table } from './print.ts';

describe('printable text', () => {
  test.each([
    ['plain text, ünïcode, 日本語, 👩‍👩‍👧', 'plain text, ünïcode, 日本語, 👩‍👩‍👧'],
    ['a\nb\r\tc', 'a\\nb\\r\\tc'],
    ['\u001b[31mred\u001b[0m', '\\x1b[31mred\\x1b[0m'],
    ['\u0000\u0007\u007f\u009b', '\\u{0}\\u{7}\\u{7f}\\u{9b}'],
    ['\u202eright to left\u2066\u200f\u061c', '\\u{202e}right to left\\u{2066}\\u{200f}\\u{61c}'],
    ['\u2028\u2029\u200b\ufeff\u00ad', '\\u{2028}\\u{2029}\\u{200b}\\u{feff}\\u{ad}'],
    ['\ud800', '\\u{d800}'],
    ['\u{e0041}', '\\u{e0041}'],
    ['C:\\new', 'C:\\new'],
  ])('%j is %s', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });
});

test('a shortened text has no half characters', () => {
  expect(shorten('short', 5)).toBe('short');
  expect(shorten('longer', 5)).toBe('long…');
  expect(shorten('👍👍👍', 2)).toBe('👍…');
});

test('columns are aligned, also behind wide and hostile text', () => {
  expect(
    table(
      ['A', 'B'],
      [
        ['日本', 'x'],
        ['\n', 'y'],
        ['', 'z'],
      ],
    ),
  ).toBe('A     B\n日本  x\n\\n    y\n      z\n');
});

test('times are told by their distance', () => {
  const now = Date.UTC(2026, 0, 1);
  expect(relativeTime(now, now)).toBe('now');
  expect(relativeTime(now - 999, now)).toBe('now');
  expect(relativeTime(now - 59_999, now)).toBe('59s ago');
  expect(relativeTime(now - 3 * 60_000, now)).toBe('3m ago');
  expect(relativeTime(now - 26 * 3_600_000, now)).toBe('1d ago');
  expect(relativeTime(now + 2 * 3_600_000, now)).toBe('in 2h');
});
