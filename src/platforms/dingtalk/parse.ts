import { type Fields, fieldsOf, integerOf, nameOf, textOf } from '../fields.ts';
import type { Incoming, Place, Press, Quote, ReplyFacts } from '../platform.ts';
import { CARD_PRESSES, type Frame, MESSAGES } from './frames.ts';
import { contentOf } from './parse-content.ts';
import { type EventBatch, parseEvents } from './parse-events.ts';

export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  | { readonly kind: 'press'; readonly press: Press }
  | ({ readonly kind: 'events' } & EventBatch);

const MOST_ID = 256;
const MOST_ADDRESS = 2048;

/**
 * What a frame says to us; null for everything we do not know or want. A frame comes from outside: whatever it is, this
 * does not throw. `robotCode` names us.
 */
export function parseFrame(frame: Frame, robotCode: string): Parsed | null {
  if (frame.type === 'EVENT') {
    const batch = parseEvents(frame);
    return batch === null ? null : { kind: 'events', ...batch };
  }
  if (frame.type !== 'CALLBACK') return null;
  if (frame.topic === MESSAGES) return parseMessage(frame.data, robotCode);
  return frame.topic === CARD_PRESSES ? parsePress(frame) : null;
}

function parseMessage(data: Fields, robotCode: string): Parsed | null {
  const place = placeOf(data);
  const conversation = idOf(data.conversationId);
  const msgId = idOf(data.msgId);
  const sender = senderOf(data);
  if (place === null || conversation === null || msgId === null || sender === null) return null;
  if (isOwn(data, data.senderId)) return null;
  const robot = idOf(data.robotCode) ?? robotCode;
  const kind = textOf(data.msgtype, 64) ?? '';
  const content = contentOf(kind, kind === 'text' ? data.text : data.content, robot);
  if (content === null) return null;
  const quoted = quoteOf(data, conversation, robot);
  const text = content.text.trim();
  const files = [...content.files, ...(quoted?.files ?? [])];
  if (text === '' && files.length === 0) return null;
  return {
    kind: 'message',
    message: {
      id: `dingtalk:${conversation}:${msgId}`,
      messageId: messageRef(conversation, msgId),
      place,
      from: { id: sender, name: nameOf(data.senderNick), bot: false },
      text,
      files,
      repliesTo: quoted?.quote ?? null,
      // In groups DingTalk brings only what names the bot, unless it is told otherwise.
      addressed: place.type === 'dm' || data.isInAtList !== false || quoted?.quote.own === true,
      edited: false,
      group: null,
      at: integerOf(data.createAt) ?? 0,
      reply: replyFacts(data),
    },
  };
}

/** An address takes answers to the message for a while. */
function replyFacts(data: Fields): ReplyFacts {
  const webhook = textOf(data.sessionWebhook, MOST_ADDRESS) || null;
  return { data: { webhook }, until: integerOf(data.sessionWebhookExpiredTime) };
}

/** A direct chat is named by who talks there: that is what the API writes to. */
function placeOf(data: Fields): Place | null {
  const isGroup = data.conversationType === '2';
  const chat = isGroup ? idOf(data.conversationId) : senderOf(data);
  if (chat === null || (!isGroup && data.conversationType !== '1')) return null;
  const name = nameOf(isGroup ? data.conversationTitle : data.senderNick);
  return { type: isGroup ? 'group' : 'dm', chat, ...(name === null ? {} : { name }) };
}

/** By the id of the staff, which people of other organisations do not have. */
function senderOf(data: Fields): string | null {
  return idOf(data.senderStaffId) ?? idOf(data.senderId);
}

function isOwn(data: Fields, sender: unknown): boolean {
  const bot = idOf(data.chatbotUserId);
  return bot !== null && sender === bot;
}

interface Quoted {
  readonly quote: Quote;
  readonly files: Incoming['files'];
}

/** The message that is answered, with its files: in groups it is the only way to give the bot a file. */
function quoteOf(data: Fields, conversation: string, robot: string): Quoted | null {
  const text = fieldsOf(data.text);
  const replied = fieldsOf(text?.repliedMsg);
  if (replied === null || text?.isReplyMsg === false) return null;
  const content = contentOf(textOf(replied.msgType ?? replied.msgtype, 64) ?? '', replied.content, robot);
  const quote = {
    messageId: messageRef(conversation, idOf(replied.msgId) ?? idOf(data.originalMsgId) ?? ''),
    text: (content?.text ?? '').trim(),
    author: nameOf(replied.senderNick),
    own: isOwn(data, replied.senderId),
  };
  return { quote, files: content?.files ?? [] };
}

function parsePress({ data, messageId }: Frame): Parsed | null {
  const card = idOf(data.outTrackId);
  const user = idOf(data.userId);
  const action = fieldsOf(fieldsOf(parseJson(data.content))?.cardPrivateData);
  const pressed = textOf(fieldsOf(action?.params)?.data, 64);
  if (card === null || user === null || !pressed) return null;
  const press = {
    id: `dingtalk:press:${messageId ?? ''}:${card}:${pressed}`,
    place: placeOfCard(data, user),
    from: { id: user, name: null, bot: false },
    messageId: card,
    data: pressed,
  };
  return { kind: 'press', press };
}

/** A card in a group names the group; one in a direct chat is pressed by the person that the chat is with. */
function placeOfCard(data: Fields, user: string): Place {
  const space = idOf(data.spaceId);
  const isDirect = /robot|single/i.test(textOf(data.spaceType, 64) ?? '');
  const isGroup = space?.startsWith('cid') === true && !isDirect;
  return isGroup ? { type: 'group', chat: space } : { type: 'dm', chat: user };
}

function parseJson(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : text;
  } catch {
    return null;
  }
}

/** Ids are texts; what is longer or has blanks or controls in it was made by nobody's server. */
function idOf(value: unknown): string | null {
  const isId = typeof value === 'string' && value.length <= MOST_ID && /^[\x21-\x7e]+$/.test(value);
  return isId && !value.includes(SEPARATOR) ? value : null;
}

const SEPARATOR = '|';

/** A sign at a message needs to know its conversation, also after a restart. */
function messageRef(conversation: string, msgId: string): string {
  return `${conversation}${SEPARATOR}${msgId}`;
}

/** The conversation and the message; null for one that is none of DingTalk's. */
export function readMessageRef(ref: string): { readonly conversation: string; readonly msgId: string } | null {
  const [conversation = '', msgId = '', ...more] = ref.split(SEPARATOR);
  return conversation === '' || msgId === '' || more.length > 0 ? null : { conversation, msgId };
}
