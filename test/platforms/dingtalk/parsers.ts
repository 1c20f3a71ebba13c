import { readFrame } from '../../../src/platforms/dingtalk/frames.ts';
import { parseFrame } from '../../../src/platforms/dingtalk/parse.ts';
import { renderCard, renderMessage, titleOf } from '../../../src/platforms/dingtalk/render.ts';
import { MESSAGES } from './world.ts';

/** Longer texts are parted before. */
const MOST_TEXT = 18_000;
/** Several times what DingTalk lets through in one message. */
const MOST_SAID = 65_536;

/** What of DingTalk reads texts from outside. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as DingTalk shows it in a message': (text) => renderMessage(text.slice(0, MOST_TEXT)),
  'a reply as DingTalk shows it on a card': (text) => renderCard(text.slice(0, MOST_TEXT)),
  'the title of a message on DingTalk': titleOf,
  'a message of DingTalk': (whole) => {
    const text = whole.slice(0, MOST_SAID);
    const repliedMsg = {
      msgType: 'richText',
      msgId: '2',
      senderNick: text,
      content: { richText: [{ text }, { text }] },
    };
    const data = {
      ...{ conversationId: '1', conversationType: '2', conversationTitle: text, msgId: '1', senderId: '3' },
      ...{ senderNick: text, msgtype: 'text', text: { content: text, isReplyMsg: true, repliedMsg } },
    };
    const headers = { topic: MESSAGES, messageId: text };
    const frame = readFrame(JSON.stringify({ type: 'CALLBACK', headers, data: JSON.stringify(data) }));
    return frame === null ? null : parseFrame(frame, 'robot');
  },
  'a frame of DingTalk': (text) => readFrame(text),
};
