import { describe, expect, test } from 'vitest';
import { readResults } from '../../../src/platforms/email/trust.ts';
import { until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { emailAt } from './scene.ts';
import { AUTHSERV, passed } from './world.ts';

const own = (results: string) => ({ 'Authentication-Results': `${AUTHSERV}; ${results}` });

async function openScene() {
  const scene = await emailAt({ authservId: AUTHSERV });
  const say = (text: string, headers: Record<string, string>, from = 'Ada <ada@people.test>') => {
    scene.world.deliver(writeMail({ from, text, headers }).raw);
  };
  /** What was taken of what came before. */
  const taken = async (): Promise<string[]> => {
    say('the last one', passed());
    await until(() => scene.inbox.texts.includes('the last one'), 'the last one');
    return scene.inbox.texts.filter((text) => text !== 'the last one');
  };
  return { ...scene, say, taken };
}

describe('where a server is named whose word counts, mail', () => {
  test('that has passed DMARC there arrives', async () => {
    await using scene = await openScene();
    scene.say('proven', passed());
    expect(await scene.taken()).toEqual(['proven']);
  });

  test.each<[string, Record<string, string>]>([
    ['without any result', {}],
    ['that has failed', own('dmarc=fail header.from=people.test')],
    ['that was not looked at', own('spf=pass smtp.mailfrom=people.test; dkim=pass header.d=people.test')],
    ['whose domain asks for nothing', own('dmarc=none header.from=people.test')],
    [
      'with a result of another server',
      { 'Authentication-Results': 'mx.evil.test; dmarc=pass header.from=people.test' },
    ],
    ['that passed for another domain', own('dmarc=pass header.from=evil.test')],
    [
      'whose result stands in a comment',
      own('dmarc=fail (dmarc=pass; header.from=people.test) header.from=people.test'),
    ],
    ['whose result stands in quotes', own('spf=fail smtp.mailfrom="x; dmarc=pass"; dmarc=fail')],
    ['whose comment does not end', own('spf=fail (; dmarc=pass header.from=people.test')],
  ])('%s is refused', async (_, headers) => {
    await using scene = await openScene();
    scene.say('forged', headers);
    expect(await scene.taken()).toEqual([]);
    expect(scene.warnings.join('\n')).toContain('mail was refused: it has not passed DMARC at our server');
  });

  test('that brings a result of its own below the one of our server is refused', async () => {
    await using scene = await openScene();
    const { raw } = writeMail({ text: 'forged', headers: passed() });
    const ours = Buffer.from(`Authentication-Results: ${AUTHSERV};\r\n dmarc=fail header.from=people.test\r\n`);
    scene.world.deliver(Buffer.concat([ours, raw]));
    expect(await scene.taken()).toEqual([]);
  });

  test('from two senders is nobody mail', async () => {
    await using scene = await openScene();
    scene.say('forged', { ...passed(), FROM: 'eve@evil.test' });
    expect(await scene.taken()).toEqual([]);
  });

  test('of one forger is told of once', async () => {
    await using scene = await openScene();
    for (const n of [1, 2, 3]) scene.say(`forged ${n}`, {});
    await scene.taken();
    expect(scene.warnings.filter((line) => line.includes('DMARC'))).toHaveLength(1);
  });
});

test('where no server is named, mail needs no proof, and the log says what that means', async () => {
  await using scene = await emailAt();
  scene.world.deliver(writeMail({ text: 'unproven' }).raw);
  await until(() => scene.inbox.texts.includes('unproven'), 'the mail');
  expect(scene.warnings.join('\n')).toContain('authserv_id is not set');
});

test.each([
  ['mx.test; dmarc=pass', 'mx.test', [['dmarc', 'pass', null]]],
  ['mx.test 1; dmarc = pass header.from=A.test', 'mx.test', [['dmarc', 'pass', 'a.test']]],
  [
    'MX.test (a (nested\\)) comment);\tdmarc/1=fail (p=none) header.from=a.test',
    'mx.test',
    [['dmarc', 'fail', 'a.test']],
  ],
  ['mx.test; none', 'mx.test', [['none', '', null]]],
  ['', '', []],
])('the results "%s" are read as they are meant', (value, authserv, methods) => {
  const read = readResults(value);
  expect(read.authserv).toBe(authserv);
  expect(read.methods.map(({ method, result, domain }) => [method, result, domain])).toEqual(methods);
});
