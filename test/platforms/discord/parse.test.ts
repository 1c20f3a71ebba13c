import { describe, expect, test } from 'vitest';
import { ChannelDirectory, channelOf } from '../../../src/platforms/discord/channels.ts';
import { channelIn, parseInteraction, parseMessage, type Self } from '../../../src/platforms/discord/parse.ts';
import { readRef } from '../../../src/platforms/discord/parse-content.ts';
import { parseEvents } from '../../../src/platforms/discord/parse-events.ts';
import { type Fields, fieldsOf } from '../../../src/platforms/fields.ts';
import { GUILD } from '../../fakes/discord-state.ts';
import { readSamples } from '../samples.ts';
import { CHANNEL, FORUM, POST } from './world.ts';

const self: Self = {
  id: '100000000000000777',
  name: 'Moirai',
  application: '100000000000000778',
  members: false,
};

/** What is known of the server of the samples. */
function furnished(): ChannelDirectory {
  const directory = new ChannelDirectory();
  const post = { type: 11, parent_id: FORUM, name: 'A question', owner_id: '100000000000042000' };
  directory.noteGuild({
    ...{ id: GUILD, system_channel_id: CHANNEL },
    channels: [
      { id: CHANNEL, type: 0, name: 'general' },
      { id: FORUM, type: 15, name: 'help' },
    ],
    threads: [
      { ...post, id: POST },
      { ...post, id: '200000000000003004', owner_id: self.id },
    ],
  });
  return directory;
}

function parse(frame: unknown): unknown {
  const { t, d } = fieldsOf(frame) ?? {};
  const fields: Fields = fieldsOf(d) ?? {};
  const directory = furnished();
  const find = (id: string) => directory.find(id);
  if (t === 'INTERACTION_CREATE') {
    const parsed = parseInteraction(fields, find, 0);
    return parsed === null ? null : parsed.kind === 'press' ? parsed.press : Reflect.get(parsed, 'message');
  }
  if (t !== 'MESSAGE_CREATE' && t !== 'MESSAGE_UPDATE')
    return parseEvents(String(t), fields, directory, self)[0] ?? null;
  const channel = channelIn(fields, find);
  const parsed = channel === null ? null : parseMessage(fields, channel, self, t === 'MESSAGE_CREATE');
  if (parsed === null) return null;
  return parsed.kind === 'event' ? parsed.event : Reflect.get(parsed, 'message');
}

describe('the samples beside the parser', () => {
  const samples = readSamples('discord');

  test('are many', () => expect(samples.length).toBeGreaterThan(50));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', (_, { payload, becomes }) => {
    if (becomes === null) expect(parse(payload)).toBeNull();
    else expect(parse(payload)).toMatchObject(becomes);
  });
});

describe('a message', () => {
  const [sample] = readSamples('discord');
  const withFields = (more: Fields) => ({ t: 'MESSAGE_CREATE', d: { ...(sample?.payload.d as Fields), ...more } });

  test('whose text no store takes loses what is wrong with it', () => {
    expect(parse(withFields({ content: 'a\0b\ud800c' }))).toMatchObject({ text: 'ab\ufffdc' });
  });

  test('with a text larger than Discord allows is cut', () => {
    expect((parse(withFields({ content: 'x'.repeat(5_000_000) })) as { text: string }).text.length).toBeLessThan(
      40_000,
    );
  });

  test.each([
    ['no id', { id: undefined }],
    ['a number for an id', { id: 1_438_000_000_000 }],
    ['an id that is a path', { id: '../../users/1' }],
    ['no author', { author: null }],
    ['a channel that is none', { channel_id: 'constructor' }],
    ['a type that nobody knows', { type: 'default' }],
  ])('with %s is skipped', (_, more) => expect(parse(withFields(more))).toBeNull());

  test('with a file on another host is taken, and its address is looked at when the file is opened', () => {
    const attachments = [{ id: '1437000000000000010', filename: 'a', size: 1, url: 'http://169.254.169.254/' }];
    const { files } = parse(withFields({ attachments })) as { files: { ref: string }[] };
    expect(readRef(files[0]!.ref)).toMatchObject({ url: 'http://169.254.169.254/' });
  });

  test('is no join where Discord tells of joins by itself', () => {
    const joined = readSamples('discord').find(({ title }) => title === 'Somebody joins the server')!;
    const channel = channelOf({ id: CHANNEL, type: 0, guild_id: GUILD })!;
    expect(parseMessage(joined.payload.d as Fields, channel, { ...self, members: true }, true)).toBeNull();
  });
});
