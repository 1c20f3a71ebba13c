import { describe, expect, test } from 'vitest';
import { parsePayload } from '../../../src/platforms/qq/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';

const ID = /^[\w-]{1,128}$/;
const MESSAGE_ID = /^[\x21-\x7e]{0,512}$/;

describe('10,000 odd events', () => {
  const payload = oddPayloads(subject.samples);
  const context = { self: { id: '777000777' }, now: 1_784_601_000_000, ownName: () => null };

  test('make the parser neither throw nor give what the contract does not know', () => {
    for (let index = 0; index < 10_000; index += 1) {
      const parsed = parsePayload(payload(), context);
      if (parsed === null) continue;
      if (parsed.kind === 'audit') {
        expect(parsed.audit).toMatch(MESSAGE_ID);
        continue;
      }
      if (parsed.kind === 'event') {
        expect('place' in parsed.event ? parsed.event.place.chat : '').toMatch(ID);
        continue;
      }
      const { place, from, messageId, id } = parsed.kind === 'message' ? parsed.message : parsed.press;
      expect([place.chat, place.scope ?? 'x', from.id ?? 'x'].every((each) => ID.test(each))).toBe(true);
      expect(messageId).toMatch(MESSAGE_ID);
      expect(id).toMatch(/^qq:/);
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
