import { parsePayload } from '../../../src/platforms/qq/parse.ts';
import { breakAddresses, renderMarkdown, renderPlain, stablePart } from '../../../src/platforms/qq/render.ts';
import { continued } from '../../../src/platforms/qq/stream.ts';

/** Longer texts are parted before. */
const SHOWN = 4000;
const context = { self: { id: '777' }, now: 0, ownName: () => null };

/** What of QQ reads texts from outside. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as QQ shows it': (text) => {
    const part = text.slice(0, SHOWN);
    return [renderMarkdown(part), breakAddresses(renderPlain(part))];
  },
  'a growing reply on QQ': (text) => {
    const whole = text.slice(0, SHOWN);
    const beginning = renderMarkdown(stablePart(text.slice(0, SHOWN / 2)));
    return [continued(beginning, renderMarkdown(whole), true), continued(whole, beginning, false)];
  },
  'an event of QQ': (text) =>
    parsePayload(
      {
        t: 'GROUP_MESSAGE_CREATE',
        id: text,
        d: {
          ...{
            id: 'm',
            group_openid: 'G',
            content: text,
            timestamp: text,
            author: { member_openid: 'M', username: text },
          },
          mentions: [{ member_openid: 'O', username: text }],
          message_scene: { ext: [`ref_msg_idx=${text}`, text] },
          msg_elements: [{ content: text, author: { username: text } }],
          attachments: [{ content_type: text, filename: text, url: text, asr_refer_text: text }],
          ark_data: { prompt: text },
        },
      },
      context,
    ),
};
