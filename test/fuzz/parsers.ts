import { globSync } from 'node:fs';
import { join } from 'node:path';
import { EventData } from '../../src/agent/model/event-data.ts';
import { pageText } from '../../src/agent/tools/page-text.ts';
import { visibleText } from '../../src/cli/chat/visible-text.ts';
import { printable } from '../../src/cli/print.ts';
import { parseDotEnv } from '../../src/config/dot-env.ts';
import { parseSchedule } from '../../src/cron/schedule.ts';
import { LONGEST_MESSAGE, messageText } from '../../src/inbound/message-text.ts';
import { nearestName } from '../../src/lifecycle/events.ts';
import { parseKey } from '../../src/lifecycle/session-key.ts';
import { makeRedactor } from '../../src/log/redact.ts';
import { factsIn } from '../../src/memory/memory-review.ts';
import { sanitize } from '../../src/platforms/outside-text.ts';
import { splitText } from '../../src/platforms/split-text.ts';
import { TELEGRAM_ABILITIES } from '../../src/platforms/telegram/abilities.ts';
import { hidePassword } from '../../src/settings/show-settings.ts';
import { parseHelp } from '../../src/space/page/chat/commands.ts';
import { parseBlocks, splitBlocks } from '../../src/space/page/chat/markdown.ts';
import { plainLine, plainText } from '../../src/space/page/data/plain-text.ts';
import { parseCommand } from '../../src/turns/command.ts';

/** Reads a text from outside. What it throws with a code is an answer too. */
export type Parser = (text: string) => unknown;

const redactor = makeRedactor(['a-secret-of-the-tests', 'another one']);
/** Longer messages are shown whole only when the person asks for it. */
const SHOWN_ON_THE_PAGE = 16_000;
const PIECE = 100_000;
const NOBODY = { id: null, name: null, bot: false };

/** Those of each platform stand beside its tests. */
async function parsersOfPlatforms(): Promise<Readonly<Record<string, Parser>>> {
  const folder = join(import.meta.dirname, '..', 'platforms');
  const files = globSync('*/parsers.ts', { cwd: folder }).sort();
  const loaded = files.map((file) => import(join(folder, file)) as Promise<{ PARSERS: Record<string, Parser> }>);
  return Object.assign({}, ...(await Promise.all(loaded)).map(({ PARSERS }) => PARSERS));
}

/** Everything that reads texts of people, models, pages and platforms. */
export const PARSERS: Readonly<Record<string, Parser>> = {
  'the parts of a reply': (text) => splitText(text, TELEGRAM_ABILITIES),
  'the parts of a reply counted in bytes': (text) =>
    splitText(text, { maxText: 4000, counts: 'bytes', markdown: true }),
  'the text of a page': pageText,
  'a message on the page': (text) =>
    splitBlocks(plainText(text.slice(0, SHOWN_ON_THE_PAGE))).map((part) => parseBlocks(part)),
  'a line on the page': plainLine,
  'the commands on the page': parseHelp,
  'a line of the log': redactor.text,
  'a command': parseCommand,
  'a name nobody knows': (text) => nearestName(text, ['list', 'remove', 'session:start']),
  'a name of a stranger': (text) => sanitize(text, 500),
  'a message for the agent': (text) =>
    messageText(
      {
        ...{
          id: '1',
          messageId: '1',
          text: text.slice(0, LONGEST_MESSAGE),
          from: { ...NOBODY, name: text },
          files: [],
          group: null,
          at: 0,
        },
        ...{ place: { type: 'dm', chat: '1' }, addressed: true, edited: false },
        repliesTo: { messageId: '1', text, author: text, own: false },
      },
      true,
    ),
  'when a job is due': (text) => parseSchedule(text, 'UTC', 0),
  'the key of a session': parseKey,
  'facts of a review': factsIn,
  'events of a model': (text) => {
    const events = new EventData(() => undefined);
    events.push(text);
    events.end();
  },
  // They come in pieces, to a process of their own.
  'words on a terminal': (text) => [visibleText(text.slice(0, PIECE)), printable(text.slice(0, PIECE))],
  'an address with a password': hidePassword,
  'lines of a .env': (text) => parseDotEnv('.env', text),
  ...(await parsersOfPlatforms()),
};
