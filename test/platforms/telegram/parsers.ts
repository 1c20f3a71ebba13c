import { parseUpdate } from '../../../src/platforms/telegram/parse.ts';
import { wordsOf } from '../../../src/platforms/telegram/send.ts';

/** What reads texts from outside, for `npm run fuzz`. */
export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Telegram shows it': (text) => wordsOf(text, true),
  'an update of Telegram': (text) =>
    parseUpdate(
      {
        update_id: 1,
        message: {
          message_id: 1,
          date: 1,
          chat: { id: 1, type: 'group', title: text },
          from: { id: 2, first_name: text },
          text,
        },
      },
      { id: 777, username: 'moirai_bot' },
    ),
};
