import { describe, expect, test } from 'vitest';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { parseSample } from './parse-sample.ts';
import { subject } from './subject.ts';

describe('10,000 odd syncs', () => {
  const payload = oddPayloads(subject.samples);

  test('make the parser neither throw nor give what the contract does not know', () => {
    const kinds = new Map<string, number>();
    for (let index = 0; index < 10_000; index += 1) {
      const parsed = parseSample(payload());
      kinds.set(parsed?.kind ?? 'none', (kinds.get(parsed?.kind ?? 'none') ?? 0) + 1);
      if (parsed?.kind === 'moved') expect(parsed.to).toMatch(/^!\S+$/);
      if (parsed?.kind === 'event' && parsed.event.kind !== 'message_failed') {
        expect(parsed.event.place.chat).toMatch(/^!\S+$/);
      }
      if (parsed?.kind !== 'message') continue;
      const { id, messageId, place, from, text, files, at } = parsed.message;
      expect(place.chat).toMatch(/^!\S+$/);
      expect([id, messageId, from.id]).toEqual([
        expect.stringMatching(/^matrix:!\S+:\$\S+$/),
        expect.stringMatching(/^\$\S+$/),
        expect.stringMatching(/^@\S+:\S+$/),
      ]);
      expect(text.length).toBeLessThan(40_000);
      expect(text.isWellFormed()).toBe(true);
      expect(Number.isSafeInteger(at) && at >= 0).toBe(true);
      expect(files.every(({ name }) => name === null || !/[/\\]/.test(name))).toBe(true);
    }
    expect(Math.min(...['none', 'message', 'event', 'moved'].map((kind) => kinds.get(kind) ?? 0))).toBeGreaterThan(50);
  });
});

fuzzOf(subject);
