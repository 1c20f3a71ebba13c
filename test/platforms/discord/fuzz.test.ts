import { describe, expect, test } from 'vitest';
import { ChannelDirectory, placeOf } from '../../../src/platforms/discord/channels.ts';
import { channelIn, parseInteraction, parseMessage } from '../../../src/platforms/discord/parse.ts';
import { parseEvents } from '../../../src/platforms/discord/parse-events.ts';
import { fieldsOf } from '../../../src/platforms/fields.ts';
import { fuzzOf } from '../fuzz.ts';
import { oddPayloads } from '../odd-payloads.ts';
import { subject } from './subject.ts';

describe('10,000 odd frames', () => {
  const payload = oddPayloads(subject.samples);
  const self = { id: '100000000000000777', name: 'Moirai', application: '100000000000000778', members: false };

  test('make the parser neither throw nor give what the contract does not know', () => {
    const directory = new ChannelDirectory();
    const find = (id: string) => directory.find(id);
    for (let index = 0; index < 10_000; index += 1) {
      const { t, d } = payload();
      const fields = fieldsOf(d) ?? {};
      directory.noteGuild({ id: fields.guild_id, channels: [fields.channel, fields] });
      const channel = channelIn(fields, find);
      const message = channel === null ? null : parseMessage(fields, channel, self, t !== 'MESSAGE_UPDATE');
      const events = parseEvents(typeof t === 'string' ? t : '', fields, directory, self);
      for (const parsed of [
        message,
        parseInteraction(fields, find, 0),
        ...events.map((event) => ({ kind: 'event', event }) as const),
      ]) {
        if (parsed === null) continue;
        const place =
          parsed.kind === 'press'
            ? parsed.press.place
            : parsed.kind === 'event'
              ? parsed.event.place
              : parsed.message.place;
        expect(`${place.chat} ${place.scope ?? 0} ${place.thread ?? 0}`).toMatch(/^\d+ \d+ \d+$/);
        if (parsed.kind !== 'message' && parsed.kind !== 'command') continue;
        const { text, files, at, id } = parsed.message;
        expect(id).toMatch(/^discord:/);
        expect(text.length).toBeLessThan(40_000);
        expect(text.isWellFormed()).toBe(true);
        expect(Number.isSafeInteger(at)).toBe(true);
        expect(files.every(({ name }) => name === null || !/[/\\]/.test(name))).toBe(true);
      }
      if (channel !== null) placeOf(channel);
    }
  });
});

fuzzOf(subject);
