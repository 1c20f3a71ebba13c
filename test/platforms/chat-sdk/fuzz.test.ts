import { expect, test } from 'vitest';
import { parseCommand, parseMessage } from '../../../src/platforms/chat-sdk/parse.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { readSamples } from '../samples.ts';
import { subject } from './subject.ts';

test('10,000 odd messages of adapters make the parser neither throw nor give what the contract does not know', () => {
  const message = oddPayloads(readSamples('chat-sdk').map(({ payload }) => payload));
  const place = { type: 'group', chat: 'room' } as const;
  for (let index = 0; index < 10_000; index += 1) {
    const odd = message();
    for (const parsed of [
      parseMessage(odd, place, { id: 'B1', name: 'moirai' }),
      parseCommand({ command: odd.text, user: odd.author, raw: odd }, odd, place, { id: null, name: null }),
    ]) {
      if (parsed === null) continue;
      const { id, messageId, from, text, files, at } = parsed;
      expect([typeof id, typeof messageId, typeof from.bot, Number.isSafeInteger(at)]).toEqual([
        ...['string', 'string', 'boolean', true],
      ]);
      expect([typeof from.id, from.id]).toSatisfy(([type, value]) => type === 'string' || value === null);
      expect([text.isWellFormed(), text.length < 70_000]).toEqual([true, true]);
      expect(files.every(({ name, ref }) => (name === null || !/[/\\]/.test(name)) && JSON.parse(ref) !== null)).toBe(
        true,
      );
    }
  }
});

fuzzOf(subject);
