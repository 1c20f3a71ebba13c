import { ImapFlow, type MailboxObject } from 'imapflow';
import nodemailer from 'nodemailer';
import PostalMime, { type Email } from 'postal-mime';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../cli/cli-fixture.ts';
import type { HttpFake } from '../../fakes/http-fake.ts';
import { startOpenAiServer } from '../../fakes/openai-server.ts';
import { GatewayProcess } from '../../gateway/process.ts';
import { lastUserLine } from '../../gateway/user-lines.ts';
import { type MailServers, startMailServers, whyNoMailServers } from '../../support/mail-servers.ts';
import { RUN_ALL } from '../../support/share.ts';

const AGENT = 'agent@agents.test';
const ADA = 'ada@people.test';
const GONE = 'gone@people.test';
const START_MS = 60_000;
const why = whyNoMailServers();

/** A person with a mail program: writes by way of Postfix, and reads by way of Dovecot. */
class Writer {
  readonly address: string;
  readonly #servers: MailServers;

  constructor(servers: MailServers, address: string) {
    this.#servers = servers;
    this.address = address;
  }

  async write(text: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const transport = nodemailer.createTransport({ host: '127.0.0.1', port: this.#servers.smtpPort, ignoreTLS: true });
    const { messageId } = await transport.sendMail({ from: this.address, to: AGENT, text, ...more });
    return messageId;
  }

  async received(folder = 'INBOX'): Promise<Email[]> {
    const mails = await this.#lookInto(folder, async (client, { exists }) => {
      return exists === 0 ? [] : await client.fetchAll('1:*', { source: true });
    });
    return await Promise.all(mails.map(({ source }) => PostalMime.parse(source!)));
  }

  /** Which numbers its mails have (UIDVALIDITY). */
  numbering(): Promise<bigint> {
    return this.#lookInto('INBOX', async (_, { uidValidity }) => uidValidity);
  }

  async #lookInto<T>(folder: string, look: (client: ImapFlow, mailbox: MailboxObject) => Promise<T>): Promise<T> {
    const client = new ImapFlow({
      ...{ host: '127.0.0.1', port: this.#servers.imapPort, secure: false, doSTARTTLS: false, logger: false },
      auth: { user: this.address, pass: this.#servers.password },
    });
    client.on('error', () => undefined);
    await client.connect();
    const found = await look(client, await client.mailboxOpen(folder, { readOnly: true }));
    await client.logout();
    return found;
  }
}

const textOf = ({ text }: Email): string => (text ?? '').trim();

describe.skipIf(why !== undefined && !RUN_ALL)(
  `Email at Dovecot and Postfix${why === undefined ? '' : `, skipped: ${why}`}`,
  () => {
    let servers: MailServers;
    let model: HttpFake;
    let gateway: GatewayProcess;
    let ada: Writer;

    const answers = async (): Promise<string[]> => (await ada.received()).map(textOf);
    const untilAnswered = (text: string) => {
      return until(`the answer to ${text}`, async () => (await answers()).includes(`did: ${text}`), 30_000).catch(
        (error) => {
          throw new Error(`${error}\n${gateway.log}\n${servers.log}`);
        },
      );
    };

    beforeAll(async () => {
      expect(why).toBeUndefined();
      servers = await startMailServers([AGENT, ADA], GONE);
      model = await startOpenAiServer(({ body }) => ({ text: `did: ${lastUserLine(body.messages)}` }));
      const server = { host: '127.0.0.1', tls: false };
      gateway = new GatewayProcess({
        model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
        platforms: {
          email: {
            ...{ address: AGENT, password: servers.password, allow: [ADA, GONE] },
            imap: { ...server, port: servers.imapPort },
            smtp: { ...server, port: servers.smtpPort },
          },
        },
        ...{ memory: { provider: 'none' }, display: { streaming: false } },
      });
      await gateway.start();
      ada = new Writer(servers, ADA);
      await until('connected', () => gateway.log.includes('"phase":"connected"'), START_MS);
      await until('the server to be asked to tell of new mail', () => servers.isIdled(AGENT), START_MS);
    }, 2 * START_MS);

    afterAll(async () => {
      await gateway?.close();
      await model?.close();
      await servers?.stop();
    });

    test('a mail is answered as soon as it comes, in its thread', async () => {
      const id = await ada.write('one', { subject: 'Cards' });
      await untilAnswered('one');
      const [mail] = await ada.received();
      expect(mail).toMatchObject({ subject: 'Re: Cards', inReplyTo: id, references: id });
      expect(mail?.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-replied');
      expect(mail?.html).toContain('<p>did: one</p>');
    });

    test('a file is read from the mailbox', async () => {
      await ada.write('look', { attachments: [{ filename: 'table.csv', content: 'a,b\n' }] });
      await untilAnswered('look');
      expect(JSON.stringify(model.requests.at(-1)?.body.messages)).toMatch(/A file table\.csv, saved as received/);
    });

    test('what was written while no process was there is answered once, in order', async () => {
      await gateway.end('SIGKILL');
      for (const text of ['two', 'three', 'four']) await ada.write(text, { references: '<thread@people.test>' });
      await gateway.start();
      await untilAnswered('four');
      await ada.write('five', { references: '<thread@people.test>' });
      await untilAnswered('five');
      const all = await answers();
      expect(new Set(all).size).toBe(all.length);
      expect(all.at(-1)).toBe('did: five');
    }, 90_000);

    test('a server that goes away and comes back is connected again, and nothing is lost', async () => {
      await servers.restartDovecot();
      await ada.write('six', { references: '<thread@people.test>' });
      await untilAnswered('six');
    }, 90_000);

    test('a mailbox whose numbers have changed is gone on with: nothing is answered twice, nothing left out', async () => {
      const agent = new Writer(servers, AGENT);
      const before = await agent.numbering();
      await gateway.end('SIGKILL');
      await servers.renumber(AGENT);
      expect(await agent.numbering()).not.toBe(before);
      await ada.write('seven', { references: '<thread@people.test>' });
      await gateway.start();
      await untilAnswered('seven');
      await ada.write('eight', { references: '<thread@people.test>' });
      await untilAnswered('eight');
      const all = await answers();
      expect(new Set(all).size).toBe(all.length);
      expect(all.slice(-2)).toEqual(['did: seven', 'did: eight']);
    }, 90_000);

    test('what we sent lies in the folder for it', async () => {
      const agent = new Writer(servers, AGENT);
      const sent = async (): Promise<number> => (await agent.received('Sent')).length;
      const expected = (await answers()).length;
      await until('the copies', async () => (await sent()) === expected, 30_000);
    });

    test('an answer that comes back is a reply that failed, with the reason', async () => {
      await new Writer(servers, GONE).write('into the void', { subject: 'Lost' });
      const failed = async () => (await gateway.events('delivery:failed')).at(-1);
      await until('the failure', async () => (await failed()) !== undefined, 30_000).catch((error) => {
        throw new Error(`${error}\n${gateway.log}\n${servers.log}`);
      });
      expect(JSON.stringify(await failed())).toContain('nobody of that name');
    });
  },
);
