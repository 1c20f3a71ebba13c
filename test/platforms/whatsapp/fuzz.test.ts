import { describe, expect, test } from 'vitest';
import { parseWebhook } from '../../../src/platforms/whatsapp/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';

const NUMBER = '106540352242922';

describe('10,000 odd webhooks', () => {
  const payload = oddPayloads(subject.samples);

  test('make the parser neither throw nor give what the contract does not know', () => {
    let messages = 0;
    for (let index = 0; index < 10_000; index += 1) {
      for (const parsed of parseWebhook(payload(), NUMBER).items) {
        expect(parsed.id).toMatch(/^whatsapp:\S+$/);
        if (parsed.kind === 'status') {
          expect(parsed.status.place.chat).toMatch(/^[\w.]+$/);
          continue;
        }
        const { place, from, messageId } =
          parsed.kind === 'message' ? parsed.message : parsed.kind === 'press' ? parsed.press : parsed.event;
        expect(place).toMatchObject({ type: 'dm', scope: NUMBER, chat: from.id });
        expect(messageId).toMatch(/^\S+$/);
        if (parsed.kind !== 'message') continue;
        messages += 1;
        const { text, files, at } = parsed.message;
        expect(text.length).toBeLessThan(40_000);
        expect(text.isWellFormed()).toBe(true);
        expect(Number.isSafeInteger(at)).toBe(true);
        expect(files.every(({ name, ref }) => (name === null || !/[/\\]/.test(name)) && /^[\w-]+$/.test(ref))).toBe(
          true,
        );
      }
    }
    // They are odd, and not all of them are nothing.
    expect(messages).toBeGreaterThan(500);
  });
});

fuzzOf(subject);
