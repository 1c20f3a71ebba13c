import { describe, expect, test } from 'vitest';
import { SendFailure } from '../../../src/platforms/platform.ts';
import type { SmtpFault } from '../../fakes/mail-server.ts';
import { never, until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { emailAt, emailOf } from './scene.ts';
import { AGENT } from './world.ts';

async function openScene(mail: Parameters<typeof writeMail>[0] = { subject: 'Cards', text: 'How many?' }) {
  const scene = await emailAt();
  const { id, raw } = writeMail(mail);
  scene.world.deliver(raw);
  await until(() => scene.inbox.received.length === 1, 'the mail');
  const { server } = scene.world;
  const failureOf = async (key = 'dlv_1') => {
    return (await scene.answer('Forty', key).catch((thrown: unknown) => thrown)) as SendFailure;
  };
  return { ...scene, id, server, failureOf };
}

describe('an answer', () => {
  test('goes to the sender, in the thread, and says that a program wrote it', async () => {
    await using scene = await openScene();
    await scene.answer('**Forty** cards', 'dlv_1');
    const [mail] = scene.server.sent;
    expect(mail).toMatchObject({
      to: ['ada@people.test'],
      subject: 'Re: Cards',
      inReplyTo: scene.id,
      references: [scene.id],
      text: '**Forty** cards',
    });
    expect(mail?.html).toContain('<p><strong>Forty</strong> cards</p>');
    expect(mail?.headers.get('auto-submitted')).toBe('auto-replied');
    expect(mail?.headers.get('x-auto-response-suppress')).toBe('All');
    expect(mail?.headers.get('from')).toBe(AGENT);
  });

  test('goes to who was let in, whatever the mail says about where answers should go', async () => {
    await using scene = await openScene({ text: 'hello', headers: { 'Reply-To': 'eve@evil.test' } });
    await scene.answer('Forty', 'dlv_1');
    expect(scene.server.sent[0]?.to).toEqual(['ada@people.test']);
  });

  test.each([
    ['Cards', 'Re: Cards'],
    ['Re: Cards', 'Re: Cards'],
    ['AW: Karten', 'AW: Karten'],
    [undefined, 'Re: (no subject)'],
  ])('to the subject %s has the subject %s', async (subject, expected) => {
    await using scene = await openScene({ text: 'x', ...(subject === undefined ? {} : { subject }) });
    await scene.answer('Forty', 'dlv_1');
    expect(scene.server.sent[0]?.subject).toBe(expected);
  });

  test('in a long thread refers to its first mail and the newest', async () => {
    const references = Array.from({ length: 60 }, (_, n) => `r${n}@people.test`);
    await using scene = await openScene({ text: 'x', references });
    await scene.answer('Forty', 'dlv_1');
    const refers = scene.server.sent[0]?.references ?? [];
    expect(refers).toHaveLength(20);
    expect([refers[0], refers.at(-1)]).toEqual(['r0@people.test', scene.id]);
  });

  test('refers to a mail by the whole of its id, however long that is', async () => {
    const id = `${'x'.repeat(500)}@people.test`;
    await using scene = await openScene({ id, text: 'x' });
    await scene.answer('Forty', 'dlv_1');
    expect(scene.server.sent[0]).toMatchObject({ inReplyTo: id, references: [id] });
  });

  test('has the same id at every attempt, and another message has another', async () => {
    await using scene = await openScene();
    const ids = [];
    for (const key of ['dlv_1', 'dlv_1', 'dlv_2']) ids.push((await scene.answer('Forty', key)).messageId);
    expect(scene.server.sent.map(({ id }) => id)).toEqual(ids);
    expect(new Set(ids).size).toBe(2);
  });

  test('leaves a copy in the folder of what was sent, and none in the inbox', async () => {
    await using scene = await openScene();
    await scene.answer('Forty', 'dlv_1');
    const { imap } = scene.server;
    await until(() => imap.folder('Sent')?.mails.length === 1, 'the copy');
    expect(imap.inbox.mails).toHaveLength(1);
    const next = emailOf(scene.world).platform;
    const { place } = scene.inbox.received[0]!;
    expect(await next.findSent(place, 'dlv_1', never)).toEqual({ messageId: scene.server.sent[0]?.id });
    expect(await next.findSent(place, 'dlv_2', never)).toBeNull();
  });

  test('without a mail that it answers is refused, and no trying mends that', async () => {
    await using scene = await openScene();
    const failure = await scene.platform
      .send({ type: 'thread', chat: 'nothing@people.test' }, { text: 'hello' }, never)
      .catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test('has files without folders in their names', async () => {
    await using scene = await openScene();
    const { place, messageId, reply } = scene.inbox.received[0]!;
    const files = [
      { kind: 'document', name: '/home/me/data.bin', mime: null, bytes: new Uint8Array([0, 255]) } as const,
    ];
    await scene.platform.send(place, { text: 'here', files, reply: { messageId, ...reply! } }, never);
    expect(scene.server.sent[0]?.files).toEqual([{ name: 'data.bin', bytes: new Uint8Array([0, 255]) }]);
  });
});

describe('a mail that is not sent', () => {
  const at = (where: 'CONNECT' | 'MAIL' | 'RCPT' | 'DATA', code: number, words: string): SmtpFault => {
    return { at: where, code, words };
  };

  test.each<[SmtpFault, object]>([
    [at('RCPT', 550, '5.1.1 no such user'), { kind: 'gone', retryAfterMs: null }],
    [at('RCPT', 553, 'no such mailbox'), { kind: 'gone', retryAfterMs: null }],
    [at('RCPT', 550, '5.7.1 not allowed'), { kind: 'forbidden', retryAfterMs: null }],
    [at('RCPT', 552, '5.2.2 the mailbox is full'), { kind: 'unknown', retryAfterMs: null }],
    [at('RCPT', 451, '4.7.1 greylisted'), { kind: 'transient', retryAfterMs: 5000 }],
    [at('DATA', 552, '5.3.4 the message is too big'), { kind: 'too_large', retryAfterMs: null }],
    [at('DATA', 554, '5.7.1 this is spam'), { kind: 'forbidden', retryAfterMs: null }],
    [at('DATA', 554, 'transaction failed'), { kind: 'forbidden', retryAfterMs: null }],
    [at('DATA', 451, '4.3.0 local error'), { kind: 'transient', retryAfterMs: 5000 }],
    [at('MAIL', 450, '4.7.1 too much mail'), { kind: 'rate_limited', retryAfterMs: 60_000 }],
    [at('MAIL', 421, '4.7.28 unusual rate'), { kind: 'rate_limited', retryAfterMs: 60_000 }],
    [at('MAIL', 550, '5.4.5 daily sending limit exceeded'), { kind: 'rate_limited', retryAfterMs: 3_600_000 }],
    [at('CONNECT', 554, '5.7.1 nobody is welcome'), { kind: 'transient', retryAfterMs: 60_000 }],
    ['cut', { kind: 'uncertain' }],
    ['lost', { kind: 'uncertain' }],
  ])('because of %j says why, and whether to try again', async (fault, expected) => {
    await using scene = await openScene();
    scene.server.failNext(fault);
    const failure = await scene.failureOf();
    expect(failure).toBeInstanceOf(SendFailure);
    expect(failure).toMatchObject(expected);
  });

  test.each([
    [at('RCPT', 451, '4.7.1 greylisted'), 'transient'],
    [at('RCPT', 550, '5.1.1 no such user'), 'gone'],
  ])('because of its reader (%j) leaves no copy that says that it was sent', async (fault, kind) => {
    await using scene = await openScene();
    scene.server.failNext(fault);
    expect(await scene.failureOf()).toMatchObject({ kind });
    const { place } = scene.inbox.received[0]!;
    expect(await scene.platform.findSent(place, 'dlv_1', never)).toBeNull();
    expect(scene.server.sent).toEqual([]);
    await scene.answer('Forty', 'dlv_1');
    expect(scene.server.sent.map(({ to }) => to)).toEqual([['ada@people.test']]);
  });

  test('because the server is not there may be sent again', async () => {
    await using scene = await openScene();
    await scene.server.close();
    expect(await scene.failureOf()).toMatchObject({ kind: 'transient', retryAfterMs: 5000 });
  });

  test('because the password is not known waits for a new one, and tells nobody the old one', async () => {
    await using scene = await openScene();
    const { password } = scene.server;
    scene.server.password = 'new';
    const failure = await scene.failureOf();
    expect(failure).toMatchObject({ kind: 'forbidden', retryAfterMs: 60_000 });
    expect([failure.message, ...scene.warnings].join('\n')).not.toContain(password);
  });
});

/** What a mail server sends back. */
function bounce(original: string, { action = 'failed', recipient = 'ada@people.test' } = {}): Buffer {
  const report = [
    'Return-Path: <>',
    'From: MAILER-DAEMON@agents.test',
    `To: ${AGENT}`,
    'Message-ID: <bounce@agents.test>',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'It was not delivered.',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.agents.test',
    '',
    `Final-Recipient: rfc822; ${recipient}`,
    `Action: ${action}`,
    'Status: 5.1.1',
    'Diagnostic-Code: smtp; 550 5.1.1 no such',
    ' user',
    '',
    '--b',
    'Content-Type: message/rfc822',
    '',
    original,
    '--b--',
    '',
  ];
  return Buffer.from(report.join('\r\n'));
}

describe('a mail that comes back', () => {
  test('is told with the key it was sent with, and is no message', async () => {
    await using scene = await openScene();
    await scene.answer('Forty', 'dlv_1');
    const original = scene.server.sent[0]!.raw.toString();
    scene.world.deliver(bounce(original));
    await until(() => scene.inbox.events.length === 1, 'the event');
    expect(scene.inbox.events).toEqual([
      {
        kind: 'message_failed',
        place: { type: 'thread', chat: scene.id },
        key: 'dlv_1',
        reason: '5.1.1 550 5.1.1 no such user',
        expired: false,
      },
    ]);
    expect(scene.inbox.received).toHaveLength(1);
  });

  test.each([
    ['that is only late', { action: 'delayed' }],
    ['of the copy to ourselves', { recipient: AGENT }],
  ])('%s changes nothing', async (_, how) => {
    await using scene = await openScene();
    await scene.answer('Forty', 'dlv_1');
    scene.world.deliver(bounce(scene.server.sent[0]!.raw.toString(), how));
    scene.world.deliver(writeMail({ text: 'behind it' }).raw);
    await until(() => scene.inbox.texts.includes('behind it'), 'the mail behind it');
    expect(scene.inbox.events).toEqual([]);
  });
});
