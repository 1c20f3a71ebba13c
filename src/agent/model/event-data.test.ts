import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventData } from './event-data.ts';

function read(pieces: readonly string[]): string[] {
  const seen: string[] = [];
  const events = new EventData((data) => seen.push(data));
  for (const piece of pieces) events.push(piece);
  events.end();
  return seen;
}

test('the data of an event is what follows data:, without the blank', () => {
  expect(read(['data: a\n\ndata:b\n\n'])).toEqual(['a', 'b']);
});

test('comments, other fields and empty events are skipped', () => {
  expect(read([': ping\n\nevent: x\nid: 7\ndata: a\n\n\n\n'])).toEqual(['a']);
});

test('several data lines of one event are one text with line breaks', () => {
  expect(read(['data: a\ndata: b\n\n'])).toEqual(['a\nb']);
});

test('an event that the end of the stream cuts off before its empty line counts', () => {
  expect(read(['data: a\n\ndata: b'])).toEqual(['a', 'b']);
});

test('events are the same wherever the text is cut into pieces and however lines end', () => {
  const texts = fc.array(fc.string().map((text) => text.replaceAll(/[\r\n]/g, '')));
  fc.assert(
    fc.property(texts, fc.constantFrom('\n', '\r\n'), fc.array(fc.nat(200)), (data, newline, cuts) => {
      const text = data.map((value) => `data: ${value}${newline}${newline}`).join('');
      const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
      const pieces = at.slice(1).map((end, i) => text.slice(at[i], end));
      expect(read(pieces)).toEqual(data);
    }),
  );
});

test('a line without an end is refused before it fills the memory', () => {
  const events = new EventData(() => undefined);
  const push = (): void => {
    for (let i = 0; i < 40; i++) events.push('x'.repeat(1024 * 1024));
  };
  expect(push).toThrow('a line has no end');
});
