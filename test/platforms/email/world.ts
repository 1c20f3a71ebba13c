import type { Place } from '../../../src/platforms/platform.ts';
import { MailServer } from '../../fakes/mail-server.ts';
import type { Shown, UserMessage, Where, World } from '../contract/scene.ts';
import { writeMail } from './mails.ts';

export const AGENT = 'agent@agents.test';
export const AUTHSERV = 'mx.agents.test';

/** The thread of a person, which began before the agent was asked. */
export function rootOf(person: number): string {
  return `thread-${person}@people.test`;
}

/** What our own server puts above a mail that has passed. */
export function passed(domain = 'people.test'): Record<string, string> {
  return { 'Authentication-Results': `${AUTHSERV}; dmarc=pass (p=reject) header.from=${domain}` };
}

/** A mailbox and those who write to it; each person has a thread of their own. */
export class EmailWorld implements World {
  readonly server: MailServer;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  #last: Buffer = Buffer.alloc(0);

  private constructor(server: MailServer) {
    this.server = server;
    this.settings = { ...server.settings, authserv_id: AUTHSERV };
    this.secrets = [server.password];
  }

  static async open({ idle = true } = {}): Promise<EmailWorld> {
    return EmailWorld.at(await MailServer.start({ address: AGENT, idle }));
  }

  static at(server: MailServer): EmailWorld {
    return new EmailWorld(server);
  }

  place(_: Where, person = 0): Place {
    return { type: 'thread', chat: rootOf(person) };
  }

  async say({ text, person = 0, file, repliesTo }: UserMessage): Promise<string> {
    const { id, raw } = writeMail({
      from: `Person ${person} <person-${person}@people.test>`,
      references: [rootOf(person), ...(repliesTo === undefined ? [] : [repliesTo])],
      ...(repliesTo === undefined ? {} : { inReplyTo: repliesTo }),
      text,
      ...(file === undefined ? {} : { file }),
      headers: passed(),
    });
    this.deliver(raw);
    return id;
  }

  deliver(raw: Buffer): void {
    this.#last = raw;
    this.server.imap.deliver(raw);
  }

  /** A sample: the lines of a mail. */
  push({ mail }: Record<string, unknown>): void {
    const lines = (Array.isArray(mail) ? mail : [mail]).map((line) => {
      return typeof line === 'string' ? line : (JSON.stringify(line) ?? '');
    });
    this.server.imap.deliver(Buffer.from(lines.join('\r\n')));
  }

  shown(): readonly Shown[] {
    return this.server.sent.map(({ id, text, references, inReplyTo, files }) => ({
      messageId: id,
      chat: references[0] ?? id,
      text,
      thread: references[0] ?? null,
      repliesTo: inReplyTo,
      files,
      buttons: [],
    }));
  }

  unacknowledged(): number {
    const { mails } = this.server.imap.inbox;
    return mails.filter(({ flags, raw }) => !flags.has('\\Seen') && !raw.includes(`From: ${AGENT}`)).length;
  }

  async echo(text: string): Promise<void> {
    const { raw } = writeMail({ from: AGENT, references: [rootOf(0)], text, headers: passed('agents.test') });
    this.server.imap.deliver(raw);
  }

  async bringAgain(): Promise<void> {
    this.server.imap.deliver(this.#last);
  }

  limitRate(): void {
    this.server.failNext({ at: 'MAIL', code: 450, words: '4.7.1 Too much mail from you, come again later' });
  }

  stumble(): void {
    this.server.failNext({ at: 'DATA', code: 451, words: '4.3.0 Local error in processing' });
  }

  cut(): void {
    this.server.cut();
  }

  invalidate(): void {
    this.server.imap.inbox.renumber();
  }

  revoke(): void {
    this.server.password = 'another one';
  }

  loseAnswer(): void {
    this.server.failNext('lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.server.onTaken = callback;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
  }
}
