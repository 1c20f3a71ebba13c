import { ChannelDirectory } from '../../../src/platforms/discord/channels.ts';
import { bodyOf } from '../../../src/platforms/discord/message-body.ts';
import { parseInteraction, parseMessage } from '../../../src/platforms/discord/parse.ts';
import { readRef } from '../../../src/platforms/discord/parse-content.ts';
import { parseEvents } from '../../../src/platforms/discord/parse-events.ts';
import { renderDiscord } from '../../../src/platforms/discord/render.ts';

const self = { id: '100000000000000777', name: 'Moirai', application: '100000000000000778', members: true };
const channel = {
  id: '200000000000003001',
  type: 0,
  guild: '200000000000003000',
  parent: null,
  owner: null,
  last: null,
};
const author = { id: '100000000000042000', username: 'ada' };
const RENDERED = 16_000;

/** What reads texts of people, models and Discord. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Discord shows it': (text) => [renderDiscord(text), renderDiscord(text.slice(0, RENDERED))],
  'output of tools as Discord shows it': (text) => bodyOf({ text: 'x', details: [{ title: text, text }] }),
  'a message of Discord': (text) =>
    parseMessage(
      {
        ...{ id: '1438000000000000001', type: 19, content: text, author: { ...author, global_name: text } },
        mentions: [{ ...author, username: text }],
        attachments: [{ id: '1438000000000000002', filename: text, url: text, content_type: text }],
        sticker_items: [{ id: '1438000000000000003', name: text, format_type: 3 }],
        referenced_message: { id: '1438000000000000004', content: text, author },
        poll: { question: { text }, answers: [{ poll_media: { text } }] },
      },
      { ...channel, name: text },
      self,
      true,
    ),
  'a command of Discord': (text) =>
    parseInteraction(
      {
        ...{ id: '1438000000000000001', type: 2, token: text, channel: { id: channel.id, type: 1, name: text } },
        ...{ user: author, data: { name: text, type: 1, options: [{ value: text }] } },
      },
      () => null,
      0,
    ),
  'an event of Discord': (text) => {
    const thread = { id: channel.id, type: 11, parent_id: channel.id, guild_id: channel.guild, name: text };
    return parseEvents('THREAD_CREATE', { ...thread, newly_created: true }, new ChannelDirectory(), self);
  },
  'where a file of Discord is': readRef,
};
