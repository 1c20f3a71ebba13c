import { describe, expect, test } from 'vitest';
import { until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { emailAt } from './scene.ts';

const from = { from: 'ada@people.test', references: ['thread@people.test'] };
const LEFT_OUT = 'a mail cannot be read and is left out';
/** Of a mail that arrives first, and whose text is all it has. */
const isHeader = (wanted: string): boolean => wanted.includes('[header]');

/** Brings a mail over which the server has trouble, and one behind it; resolves when that one is taken. */
async function openScene(troubleOver: (wanted: string, tries: number) => ReturnType<Trouble>) {
  const scene = await emailAt({ speed: 1000 });
  const { imap } = scene.world.server;
  const { nextUid } = imap.inbox;
  let tries = 0;
  imap.trouble = ({ uid }, wanted) => {
    if (uid !== nextUid) return null;
    const trouble = troubleOver(wanted.toLowerCase(), tries);
    if (trouble !== null) tries += 1;
    return trouble;
  };
  scene.world.deliver(writeMail({ ...from, text: 'first' }).raw);
  scene.world.deliver(writeMail({ ...from, text: 'behind it' }).raw);
  await until(() => scene.inbox.texts.includes('behind it'), 'the mail behind it');
  return { ...scene, imap, tries: () => tries };
}

type Trouble = Awaited<ReturnType<typeof emailAt>>['world']['server']['imap']['trouble'];

describe('a mail that the server cannot give out', () => {
  test.each([
    ['at all', () => true, 'NO [SERVERBUG]', 3],
    ['but for its header', (wanted: string) => !isHeader(wanted), 'NO [SERVERBUG]', 3],
    ['without ending the connection over its words', (wanted: string) => !isHeader(wanted), 'cut', 10],
    ['while it has other things to do', (wanted: string) => !isHeader(wanted), 'NO [UNAVAILABLE]', 10],
  ] as const)('%s is left where it is at last, and the others arrive', async (_, concerns, trouble, times) => {
    await using scene = await openScene((wanted) => (concerns(wanted) ? trouble : null));
    expect(scene.inbox.texts).toEqual(['behind it']);
    expect(scene.warnings.filter((line) => line.includes(LEFT_OUT))).toHaveLength(1);
    expect(scene.tries()).toBeGreaterThanOrEqual(times);
  });

  test.each(['cut', 'NO [UNAVAILABLE]', 'NO [SERVERBUG]'] as const)(
    'for a moment (%s) arrives whole, and in order',
    async (trouble) => {
      await using scene = await openScene((wanted, tries) => (!isHeader(wanted) && tries < 2 ? trouble : null));
      expect(scene.inbox.texts).toEqual(['first', 'behind it']);
      expect(scene.warnings.join('\n')).not.toContain(LEFT_OUT);
    },
  );

  test('because somebody takes it out of the mailbox while it is read is no message', async () => {
    await using scene = await emailAt();
    const { imap } = scene.world.server;
    const { inbox } = imap;
    const taken = inbox.nextUid;
    imap.trouble = ({ uid }) => {
      if (uid === taken) inbox.mails = inbox.mails.filter((mail) => mail.uid !== taken);
      return null;
    };
    scene.world.deliver(writeMail({ ...from, text: 'not for you' }).raw);
    await until(() => inbox.mails.length === 0, 'that it is gone');
    scene.world.deliver(writeMail({ ...from, text: 'behind it' }).raw);
    await until(() => scene.inbox.texts.includes('behind it'), 'the mail behind it');
    expect(scene.inbox.texts).toEqual(['behind it']);
  });
});
