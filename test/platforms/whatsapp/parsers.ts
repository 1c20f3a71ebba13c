import { parameterOf, textPayload } from '../../../src/platforms/whatsapp/compose.ts';
import { parseWebhook } from '../../../src/platforms/whatsapp/parse.ts';
import { renderMarks } from '../../../src/platforms/whatsapp/render.ts';

const NUMBER = '106540352242922';
/** Longer texts are parted before. */
const MOST_TEXT = 4096;

/** What reads texts from outside, for `npm run fuzz`. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply in the marks of WhatsApp': (text) => renderMarks(text.slice(0, MOST_TEXT)),
  'a reply as WhatsApp takes it': (text) => {
    const part = text.slice(0, MOST_TEXT);
    return [textPayload(part), parameterOf(part)];
  },
  'a webhook of WhatsApp': (text) => {
    const message = { id: text, from: '15550001000', timestamp: '1760000000', type: 'text', text: { body: text } };
    const document = {
      ...message,
      id: 'wamid.A',
      type: 'document',
      document: { id: '1', filename: text, mime_type: text },
    };
    const status = { id: 'wamid.B', status: 'failed', recipient_id: text, errors: [{ title: text }] };
    const value = {
      metadata: { phone_number_id: NUMBER },
      contacts: [{ wa_id: '15550001000', profile: { name: text } }],
      messages: [message, { ...message, id: 'wamid.C' }, document],
      statuses: [status, { ...status, recipient_id: '15550001000', biz_opaque_callback_data: text }],
    };
    return parseWebhook({ entry: [{ changes: [{ field: 'messages', value }] }] }, NUMBER);
  },
};
