import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { accountOf, type MailServer as ServerOfAccount } from '../../../src/platforms/email/account.ts';
import { Email } from '../../../src/platforms/email/platform.ts';
import { MailServer } from '../../fakes/mail-server.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { never, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { writeMail } from './mails.ts';
import { AGENT } from './world.ts';

type Encryption = ServerOfAccount['encryption'];

const trusted = makeCertificate();
const untrusted = makeCertificate();
setDefaultCACertificates([...getCACertificates('default'), trusted.cert]);

/** A platform that wants its connections encrypted in a way, at servers that do it in another, or not at all. */
async function openScene(wanted: Encryption, from: Encryption, certificate = trusted) {
  const encryption = from === 'none' ? {} : { encryption: { from, certificate } };
  const server = await MailServer.start({ address: AGENT, ...encryption });
  const { password, smtpPort, imap } = server;
  const serverAt = (port: number) => ({ host: '127.0.0.1', port, user: AGENT, password, encryption: wanted });
  const account = { address: AGENT, imap: serverAt(imap.port), smtp: serverAt(smtpPort), authservId: null };
  const runtime = testRuntime('email');
  const platform = new Email({ account, runtime, startedAt: Date.now() });
  const inbox = new TestInbox();
  await platform.start(inbox);
  const close = async () => {
    await platform.stop();
    await server.close();
  };
  return { server, platform, inbox, [Symbol.asyncDispose]: close };
}

describe.each(['tls', 'starttls'] as const)('with %s', (encryption) => {
  test('a mail is taken and answered, and the account can be tried', async () => {
    await using scene = await openScene(encryption, encryption);
    const { platform, inbox, server } = scene;
    await until(() => platform.state.phase === 'connected', 'connected');
    server.imap.deliver(writeMail({ text: 'hello' }).raw);
    await until(() => inbox.texts.length === 1, 'the mail');
    const { place, messageId, reply } = inbox.received[0]!;
    await platform.send(place, { text: 'Forty', key: 'dlv_1', reply: { messageId, ...reply! } }, never);
    expect(server.sent.map(({ text }) => text)).toEqual(['Forty']);
    expect(await platform.identify(never)).toContain(AGENT);
  });

  test.each<[string, Encryption, typeof trusted]>([
    ['whose certificate nobody vouches for', encryption, untrusted],
    ['that does not encrypt', 'none', trusted],
  ])('a server %s is told no password, and the trouble has a name', async (_, from, certificate) => {
    await using scene = await openScene(encryption, from, certificate);
    const { platform, inbox, server } = scene;
    await until(() => platform.state.phase === 'degraded', 'the trouble');
    expect(platform.state.problem).toMatch(/cannot be reached: \w*(?:CERT|SSL)|does not encrypt at this port/);
    const message = { text: 'x', reply: { messageId: 'm', data: { to: 'ada@people.test' }, until: null } };
    const place = { type: 'thread', chat: 'm' } as const;
    const failure = await platform.send(place, message, never).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ kind: 'transient' });
    expect(String(failure)).toMatch(/cannot be reached: \w*(?:CERT|SSL)|does not encrypt at this port/);
    expect(inbox.tried).toEqual([]);
    expect(server.imap.commands.filter((command) => /^(?:LOGIN|AUTHENTICATE)/.test(command))).toEqual([]);
    expect(server.passwords).toEqual([]);
  });
});

test.each<[object, object]>([
  [{}, { imap: [993, 'tls'], smtp: [465, 'tls'] }],
  [{ port: 143 }, { imap: [143, 'starttls'], smtp: [143, 'starttls'] }],
  [{ port: 587 }, { imap: [587, 'starttls'], smtp: [587, 'starttls'] }],
  [{ port: 4000 }, { imap: [4000, 'tls'], smtp: [4000, 'tls'] }],
  [{ tls: false }, { imap: [143, 'none'], smtp: [25, 'none'] }],
])('the settings %j mean the ports and the encryption %j', (given, expected) => {
  const server = { host: 'mail.test', port: null, user: null, password: null, tls: true, ...given };
  const account = accountOf({
    ...{ address: AGENT, password: 'x', imap: server, smtp: server, authservId: null, apiRoot: null },
  });
  const shown = ({ port, encryption }: ServerOfAccount) => [port, encryption];
  expect({ imap: shown(account.imap), smtp: shown(account.smtp) }).toEqual(expected);
});
