import { createSecureContext } from 'node:tls';
import PostalMime from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import type { Certificate } from '../support/certificate.ts';
import { ImapServer } from './imap-server.ts';

/** A mail that the agent has sent, as its reader has it. */
export interface SentMail {
  readonly id: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly inReplyTo: string | null;
  readonly references: readonly string[];
  readonly headers: ReadonlyMap<string, string>;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly raw: Buffer;
}

/** Makes the next mail go wrong: a reply of the server to what the client says, or what happens with the connection. */
export type SmtpFault =
  | { readonly at: 'CONNECT' | 'MAIL' | 'RCPT' | 'DATA'; readonly code: number; readonly words: string }
  /** It is taken, and the connection ends instead of an answer. */
  | 'lost'
  /** The connection ends before the mail is taken. */
  | 'cut';

interface MailServerOptions {
  readonly address: string;
  readonly idle?: boolean;
  /** Where other addresses are; what is sent there is put into their mailbox, too. */
  readonly others?: () => readonly MailServer[];
  /** How both servers encrypt; not at all unless given. */
  readonly encryption?: { readonly from: 'tls' | 'starttls'; readonly certificate: Certificate };
}

/** A provider of mail on loopback: the mailbox of the agent by IMAP, and an SMTP server that takes what it sends. */
export class MailServer {
  readonly address: string;
  readonly imap: ImapServer;
  readonly sent: SentMail[] = [];
  password = 'secret-of-the-mailbox';
  /** Every password that the SMTP server was told. */
  readonly passwords: string[] = [];
  /** Called when a mail was taken, before the client is told. */
  onTaken: (() => void) | null = null;
  readonly #smtp: SMTPServer;
  readonly #faults: SmtpFault[] = [];
  readonly #others: () => readonly MailServer[];

  private constructor(options: MailServerOptions, imapOf: (server: MailServer) => ImapServer) {
    this.address = options.address;
    this.#others = options.others ?? (() => []);
    this.imap = imapOf(this);
    this.#smtp = new SMTPServer({
      ...(options.encryption?.from === 'starttls' ? {} : { disabledCommands: ['STARTTLS'] }),
      ...{ secure: options.encryption?.from === 'tls', ...options.encryption?.certificate },
      hideSize: false,
      size: 30_000_000,
      logger: false,
      onAuth: ({ username, password }, _, done) => {
        this.passwords.push(String(password));
        const known = username === this.address && password === this.password;
        done(known ? null : refusal(535, '5.7.8 wrong user or password'), known ? { user: username } : undefined);
      },
      onConnect: (_, done) => done(this.#faultAt('CONNECT')),
      onMailFrom: (_, __, done) => done(this.#faultAt('MAIL')),
      onRcptTo: ({ address }, _, done) => done(address === this.address ? null : this.#faultAt('RCPT')),
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          this.#take(
            Buffer.concat(chunks),
            session.envelope.rcptTo.map(({ address }) => address),
          ).then(
            () => done(),
            (error: Error) => (error.message === 'silent' ? this.cut() : done(error)),
          );
        });
      },
    });
    this.#smtp.on('error', () => undefined);
  }

  static async start(options: MailServerOptions): Promise<MailServer> {
    let server: MailServer | null = null;
    const login = () => ({ user: options.address, password: server?.password ?? '' });
    const { idle = true, encryption } = options;
    const imap = await ImapServer.start(login, {
      idle,
      ...(encryption && {
        encryption: { from: encryption.from, context: createSecureContext({ ...encryption.certificate }) },
      }),
    });
    server = new MailServer(options, () => imap);
    await new Promise<void>((resolve) => server.#smtp.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get smtpPort(): number {
    return (this.#smtp.server.address() as { port: number }).port;
  }

  /** What stands under `platforms.email`. */
  get settings() {
    const common = { host: '127.0.0.1', tls: false };
    return {
      address: this.address,
      password: this.password,
      imap: { ...common, port: this.imap.port },
      smtp: { ...common, port: this.smtpPort },
    };
  }

  failNext(...faults: SmtpFault[]): void {
    this.#faults.push(...faults);
  }

  /** Cuts every connection. */
  cut(): void {
    this.imap.cut();
    for (const connection of this.#smtp.connections as Set<{ _socket?: { destroy(): void } }>)
      connection._socket?.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await Promise.all([this.imap.close(), new Promise<void>((resolve) => this.#smtp.close(() => resolve()))]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #faultAt(at: 'CONNECT' | 'MAIL' | 'RCPT' | 'DATA'): Error | null {
    const [fault] = this.#faults;
    if (typeof fault !== 'object' || fault.at !== at) return null;
    this.#faults.shift();
    return refusal(fault.code, fault.words);
  }

  /** Puts a mail into the mailboxes of those it is for, all of them or none. */
  async #take(raw: Buffer, recipients: readonly string[]): Promise<void> {
    const refused = this.#faultAt('DATA');
    if (refused !== null) throw refused;
    const [fault] = this.#faults;
    if (fault === 'cut' || fault === 'lost') this.#faults.shift();
    if (fault === 'cut') throw new Error('silent');
    const sent = await readSent(
      raw,
      recipients.filter((address) => address !== this.address),
    );
    this.sent.push(sent);
    const delivered = Buffer.concat([Buffer.from(`Return-Path: <${this.address}>\r\n`), raw]);
    if (recipients.includes(this.address)) this.imap.deliver(delivered);
    for (const other of this.#others()) if (recipients.includes(other.address)) other.imap.deliver(delivered);
    this.onTaken?.();
    if (fault === 'lost') throw new Error('silent');
  }
}

function refusal(responseCode: number, words: string): Error {
  return Object.assign(new Error(words), { responseCode });
}

async function readSent(raw: Buffer, to: readonly string[]): Promise<SentMail> {
  const mail = await PostalMime.parse(raw);
  const idOf = (text: string | undefined): string | null => /<([^<>]+)>/.exec(text ?? '')?.[1] ?? null;
  return {
    id: idOf(mail.messageId) ?? '',
    to,
    subject: mail.subject ?? '',
    text: (mail.text ?? '').replaceAll('\r\n', '\n').replace(/\n+$/, ''),
    html: mail.html ?? '',
    inReplyTo: idOf(mail.inReplyTo),
    references: [...(mail.references ?? '').matchAll(/<([^<>]+)>/g)].map(([, id = '']) => id),
    headers: new Map(mail.headers.map(({ key, value }) => [key, value])),
    files: mail.attachments.map(({ filename, content }) => ({
      name: filename ?? '',
      bytes: new Uint8Array(content as ArrayBuffer),
    })),
    raw,
  };
}
