import { expect, test } from 'vitest';
import { VisibleStream, visibleText } from './visible-text.ts';

test('lines and tabs stay, whatever else would act on a terminal is shown', () => {
  expect(visibleText('a\r\nb\tc\u001b[2J\rd\u202e')).toBe('a\nb\tc\\x1b[2J\\rd\\u{202e}');
});

test('pieces make the whole, wherever they are cut', () => {
  const text = 'a\r\nb 😀 c\rd';
  for (let cut = 0; cut <= text.length; cut++) {
    const stream = new VisibleStream();
    const shown = stream.piece(text.slice(0, cut)) + stream.piece(text.slice(cut)) + stream.rest();
    expect(shown).toBe('a\nb 😀 c\\rd');
  }
});

test('half a character that never becomes a whole one is shown as what it is', () => {
  const stream = new VisibleStream();
  expect(stream.piece('a\ud83d') + stream.rest()).toBe('a\\u{d83d}');
});
