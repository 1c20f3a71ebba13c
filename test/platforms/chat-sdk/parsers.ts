import { parseCommand, parseMessage } from '../../../src/platforms/chat-sdk/parse.ts';
import { postableOf } from '../../../src/platforms/chat-sdk/render.ts';

const self = { id: 'B1', name: 'moirai' };
const place = { type: 'group', chat: 'room' } as const;

/** What of an adapter's messages is read. What adapters make of ours is theirs. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a message of an adapter of the Chat SDK': (text) => {
    const author = { userId: text, userName: text, fullName: text };
    const attachment = { type: text, name: text, url: text, fetchMetadata: { id: text } };
    const message = { id: 'm', text, author, metadata: { edited: true }, attachments: [attachment] };
    return [
      parseMessage({ ...message, replyTo: message }, place, self),
      parseMessage({ ...message, text: '@moirai'.repeat(text.length / 7) }, place, { id: null, name: 'moira' }),
      parseCommand({ command: `/${text}`, text, user: author, raw: message }, message, place, self),
    ];
  },
  'a reply for an adapter of the Chat SDK': (text) =>
    postableOf({ text, buttons: [[{ label: text, data: text }]] }, false),
};
