import { describe, expect, test } from 'vitest';
import { parsePayload } from '../../../src/platforms/slack/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';

describe('10,000 odd payloads', () => {
  const payload = oddPayloads(subject.samples);
  const self = { userId: 'UBOT', botId: 'BBOT', teamId: 'T1', team: 'Test', name: 'moirai' };

  test('make the parser neither throw nor give what the contract does not know', () => {
    for (let index = 0; index < 10_000; index += 1) {
      const parsed = parsePayload(payload(), { self, now: 1_760_000_000_000 });
      if (parsed === null || parsed.kind === 'revoked') continue;
      if (parsed.kind === 'moved' || parsed.kind === 'opened') {
        expect(Object.values(parsed).every((value) => typeof value === 'string')).toBe(true);
        continue;
      }
      if (parsed.kind === 'event') {
        expect(parsed.event).toMatchObject({
          kind: expect.any(String),
          place: { chat: expect.stringMatching(/^[\w-]+$/) },
        });
        continue;
      }
      const { place, from, messageId, id } = parsed.kind === 'press' ? parsed.press : parsed.message;
      expect([place.chat, place.scope, place.thread ?? '1']).toSatisfy((parts: string[]) =>
        parts.every((part) => /^[\w.-]+$/.test(part)),
      );
      expect(messageId.length).toBeLessThan(300);
      expect(id).toMatch(/^[\w-]+:[\w-]+:/);
      expect(from.id === null || typeof from.id === 'string').toBe(true);
      if (parsed.kind === 'press') continue;
      const { text, files, at } = parsed.message;
      expect(text.length).toBeLessThan(40_000);
      expect(text.isWellFormed()).toBe(true);
      expect(Number.isSafeInteger(at)).toBe(true);
      expect(files.every(({ name }) => name === null || !/[/\\]/.test(name))).toBe(true);
    }
  });
});

fuzzOf(subject);
