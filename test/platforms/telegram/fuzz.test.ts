import { describe, expect, test } from 'vitest';
import { parseUpdate } from '../../../src/platforms/telegram/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';

describe('10,000 odd updates', () => {
  const payload = oddPayloads(subject.samples);
  const self = { id: 777, username: 'moirai_bot' };

  test('make the parser neither throw nor give what the contract does not know', () => {
    for (let index = 0; index < 10_000; index += 1) {
      const parsed = parseUpdate(payload(), self);
      if (parsed === null) continue;
      if (parsed.kind === 'event') {
        expect(parsed.event.place.chat).toMatch(/^-?\d+$/);
        continue;
      }
      if (parsed.kind === 'moved') {
        expect(`${parsed.from} ${parsed.to}`).toMatch(/^-?\d+ -?\d+$/);
        continue;
      }
      const { place, from, messageId, id } = parsed.kind === 'message' ? parsed.message : parsed.press;
      expect(place.chat).toMatch(/^-?\d+$/);
      expect(messageId).toMatch(/^-?\d+$/);
      expect(id).toMatch(/^telegram:/);
      expect([typeof from.id, from.id]).toSatisfy(([type, value]) => type === 'string' || value === null);
      if (parsed.kind === 'message') {
        const { text, files, at } = parsed.message;
        expect(text.length).toBeLessThan(40_000);
        expect(text.isWellFormed()).toBe(true);
        expect(Number.isSafeInteger(at)).toBe(true);
        expect(files.every(({ name }) => name === null || !/[/\\]/.test(name))).toBe(true);
      }
    }
  });
});

fuzzOf(subject);
