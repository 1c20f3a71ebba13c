import { describe, expect, test } from 'vitest';
import { readFrame } from '../../../src/platforms/dingtalk/frames.ts';
import { parseFrame } from '../../../src/platforms/dingtalk/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';
import { frameOf } from './world.ts';

const ID = /^[\x21-\x7e]{1,256}$/;

describe('10,000 odd frames', () => {
  const payload = oddPayloads(subject.samples);

  test('make the parser neither throw nor give what the contract does not know', () => {
    for (let index = 0; index < 10_000; index += 1) {
      const frame = readFrame(JSON.stringify(frameOf(payload())));
      const parsed = frame === null ? null : parseFrame(frame, 'robot-1');
      if (parsed === null) continue;
      if (parsed.kind === 'events') {
        expect(parsed.events.every(({ place }) => place.chat !== '')).toBe(true);
        continue;
      }
      const { place, from, messageId, id } = parsed.kind === 'message' ? parsed.message : parsed.press;
      expect(place.chat).toMatch(ID);
      expect(messageId.length).toBeGreaterThan(0);
      expect(id).toMatch(/^dingtalk:/);
      expect(from.id).toMatch(ID);
      if (parsed.kind === 'message') {
        const { text, files, at, reply } = parsed.message;
        expect(text.length).toBeLessThan(40_000);
        expect(text.isWellFormed()).toBe(true);
        expect(Number.isSafeInteger(at)).toBe(true);
        expect(files.every(({ name }) => name === null || !/[/\\]/.test(name))).toBe(true);
        expect(Object.values(reply?.data ?? {}).every((each) => typeof each !== 'object' || each === null)).toBe(true);
      }
    }
  });
});

fuzzOf(subject);
