import { parsePayload } from '../../../src/platforms/slack/parse.ts';
import { renderBeginning, renderMarkdown } from '../../../src/platforms/slack/render.ts';
import { contentOf } from '../../../src/platforms/slack/send.ts';
import { decodeText } from '../../../src/platforms/slack/text.ts';

const self = { userId: 'UBOT', botId: 'BBOT', teamId: 'T1', team: 'Test', name: 'moirai' };
const at = { channel: 'C1', channel_type: 'channel', user: 'U42', ts: '1760000101.000100' };

export const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a reply as Slack shows it': (text) => contentOf({ text }),
  'a stream as Slack shows it': (text) => [renderBeginning(text), renderMarkdown(text)],
  // What is longer is cut before.
  'a text of Slack': (text) => decodeText(text.slice(0, 40_000), self),
  'an event of Slack': (text) =>
    parsePayload(
      {
        type: 'event_callback',
        team_id: 'T1',
        event: { type: 'message', ...at, text, files: [{ id: 'F1', name: text }] },
      },
      { self, now: 0 },
    ),
  'a command of Slack': (text) =>
    parsePayload({ command: '/moirai', text, channel_id: 'C1', user_id: 'U42', trigger_id: '1.1' }, { self, now: 0 }),
};
