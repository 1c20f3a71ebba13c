import { renderMessage } from '../../../src/platforms/matrix/render.ts';
import { parseSample, SELF } from './parse-sample.ts';

/** What reads texts from outside. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Matrix shows it': renderMessage,
  'a message of Matrix': (text) => {
    const content = { msgtype: 'm.text', body: text, formatted_body: text, 'm.mentions': { user_ids: [text] } };
    const relation = { 'm.in_reply_to': { event_id: '$before' }, key: text };
    const event = { type: 'm.room.message', sender: '@ada:example.org', event_id: '$x', origin_server_ts: 1 };
    const own = { ...event, event_id: '$before', sender: SELF.userId, content };
    const answer = { ...event, content: { ...content, 'm.relates_to': relation } };
    return parseSample({
      next_batch: text.slice(0, 10) || 's1',
      rooms: { join: { '!group:example.org': { timeline: { events: [own, answer] } } } },
    });
  },
  'a file of Matrix': (text) => {
    const content = { msgtype: 'm.file', body: text, filename: text, url: `mxc://${text}`, info: { mimetype: text } };
    const event = { type: 'm.room.message', sender: '@ada:example.org', event_id: '$x', content };
    return parseSample({
      next_batch: 's1',
      rooms: { join: { '!dm0:example.org': { timeline: { events: [event] } } } },
    });
  },
};
