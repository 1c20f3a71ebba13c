import { describe, expect, test } from 'vitest';
import { clampText, plainLine, plainText } from './plain-text.ts';

describe('text from people', () => {
  test.each([
    ['an escape sequence', '\u001b[31mred', '␛[31mred'],
    ['a turn of direction', 'abc\u202etxt.exe', 'abc⟨202E⟩txt.exe'],
    ['an isolate', '\u2066x\u2069', '⟨2066⟩x⟨2069⟩'],
    ['a C1 control', 'a\u009bb', 'a⟨009B⟩b'],
    ['a bell, a null and a delete', '\u0007\u0000\u007f', '␇␀␡'],
    ['half of a pair', 'a\ud83d', 'a⟨D83D⟩'],
    ['a space without width', 'a\u200bb', 'a⟨200B⟩b'],
  ])('shows %s', (_, text, shown) => {
    expect(plainText(text)).toBe(shown);
  });

  test.each(['Ünïcode', 'שלום', '👩‍👩‍👧', 'a\tb\nc', '日本語'])('leaves %j as it is', (text) => {
    expect(plainText(text)).toBe(text);
  });

  test('is one line where there is space for one', () => {
    expect(plainLine(' a\n\n b\tc ')).toBe('a b c');
  });

  test('is cut between characters', () => {
    expect(clampText('ab👍cd', 3)).toEqual({ text: 'ab', cut: true });
    expect(clampText('abc', 3)).toEqual({ text: 'abc', cut: false });
  });
});
