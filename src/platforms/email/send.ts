import { Readable } from 'node:stream';
import MailComposer from 'nodemailer/lib/mail-composer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { ChatQueues } from '../chat-queues.ts';
import { withDeadline } from '../deadline.ts';
import { textOf } from '../fields.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type Place, type PlatformRuntime, SendFailure } from '../platform.ts';
import type { Redact } from '../redaction.ts';
import type { MailAccount, MailServer } from './account.ts';
import { sendFailureOf } from './failures.ts';
import { LONGEST_ID } from './head.ts';
import { ownIdOf } from './own-ids.ts';
import { renderHtml } from './render.ts';
import { boundedReferences } from './threads.ts';

const CONNECT_MS = 20_000;
/** RFC 5321 gives a server ten minutes to think about a mail; what is slower than this is not sent twice, but looked for. */
const SEND_MS = 300_000;
/** More connections at a time than this some servers refuse. */
const MOST_CONNECTIONS = 4;
/** What is asked for patience is the whole account. */
const ALL = 'all';

/** What an answer needs of the mail that it answers. */
interface Answered {
  readonly to: string;
  readonly subject: string | null;
  readonly id: string | null;
  readonly references: readonly string[];
}

/** Sends mails, each with a copy to our own mailbox: a copy there says that the server has taken the mail. */
export class MailSender {
  readonly #account: MailAccount;
  readonly #runtime: PlatformRuntime;
  readonly #redact: Redact;
  readonly #gate: FloodGate;
  readonly #lanes = new ChatQueues();
  #next = 0;

  constructor(account: MailAccount, runtime: PlatformRuntime, redact: Redact) {
    this.#account = account;
    this.#runtime = runtime;
    this.#redact = redact;
    this.#gate = new FloodGate(runtime);
  }

  /** Returns the id of what was sent. Throws `SendFailure`. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const answered = answeredBy(message);
    const id = this.idOf(place, message.key ?? this.#randomKey());
    const mail = await compose(this.#account.address, id, answered, message, new Date(this.#runtime.now()));
    const lane = String(this.#next++ % MOST_CONNECTIONS);
    await this.#lanes.run(lane, () => this.#transact(answered.to, mail, signal));
    return id;
  }

  /** The same at every attempt: many who get a mail twice show one of them. */
  idOf({ chat }: Place, key: string): string {
    return ownIdOf({ key, root: chat }, this.#account.address);
  }

  async #transact(to: string, mail: Buffer, signal: AbortSignal): Promise<void> {
    this.#gate.check(ALL);
    const { address, smtp } = this.#account;
    const outcome: Outcome = { begun: false, refused: null };
    try {
      const readers = to === address ? [to] : [to, address];
      await withDeadline(signal, SEND_MS, (deadline) =>
        overSmtp(smtp, deadline, (connection) => transfer(connection, { from: address, to: readers }, mail, outcome)),
      );
    } catch (thrown) {
      if (signal.aborted && !outcome.begun) throw signal.reason;
      throw this.#gate.note(ALL, sendFailureOf(outcome.refused ?? thrown, outcome.begun, this.#redact));
    }
  }

  #randomKey(): string {
    return `${this.#runtime.now().toString(36)}-${this.#runtime.random().toString(36).slice(2)}`;
  }
}

/** Logs in at the SMTP server, and does something there. */
export async function overSmtp<T>(
  { host, port, user, password, encryption }: MailServer,
  signal: AbortSignal,
  work: (connection: SMTPConnection) => Promise<T>,
): Promise<T> {
  const connection = new SMTPConnection({
    host,
    port,
    secure: encryption === 'tls',
    requireTLS: encryption === 'starttls',
    ignoreTLS: encryption === 'none',
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SEND_MS,
  });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  connection.on('error', reject);
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const call = async <R>(begin: (done: (error?: Error | null, result?: R) => void) => void): Promise<R> => {
    const answer = new Promise<R>((resolve, refuse) => {
      begin((error, result) => (error ? refuse(error) : resolve(result as R)));
    });
    return await Promise.race([answer, failed]);
  };
  try {
    signal.throwIfAborted();
    await call((done) => connection.connect(done));
    if (connection.allowsAuth) await call((done) => connection.login({ user, pass: password }, done));
    return await Promise.race([work(connection), failed]);
  } finally {
    signal.removeEventListener('abort', abort);
    connection.close();
  }
}

/** `begun`: some of the mail is on its way. `refused`: why its reader is not taken. */
type Outcome = { begun: boolean; refused: Error | null };

function transfer(
  connection: SMTPConnection,
  envelope: { readonly from: string; readonly to: string[] },
  mail: Buffer,
  outcome: Outcome,
): Promise<void> {
  // It is read once the server has said that it takes the mail, if only for one of those that it is for. Without its reader it
  // must not be taken at all: a copy in our own mailbox says that it was sent.
  const content = new Readable({
    read() {
      outcome.refused = refusalOf(connection, envelope.from);
      if (outcome.refused !== null) return void this.destroy(outcome.refused);
      outcome.begun = true;
      this.push(mail);
      this.push(null);
    },
  });
  return new Promise((resolve, reject) => {
    connection.send({ ...envelope, size: mail.length }, content, (error) => (error ? reject(error) : resolve()));
  });
}

/** Why the server does not take the mail for anybody but ourselves. The library tells it only once the mail is sent. */
function refusalOf(connection: SMTPConnection, address: string): Error | null {
  const { _envelope } = connection as unknown as {
    readonly _envelope?: { readonly rejectedErrors?: readonly Refusal[] };
  };
  return _envelope?.rejectedErrors?.find(({ recipient }) => recipient !== address) ?? null;
}

type Refusal = Error & { readonly recipient?: unknown };

function answeredBy({ reply }: Outgoing): Answered {
  const to = textOf(reply?.data.to, 320);
  if (reply === undefined || !to) {
    throw new SendFailure('a mail answers one that came, and none is known of this thread', null, 'unknown');
  }
  const { subject, id, references } = reply.data;
  return {
    to,
    subject: textOf(subject, 256),
    id: textOf(id, LONGEST_ID),
    references: (textOf(references) ?? '').split(' ').filter((each) => each !== ''),
  };
}

async function compose(from: string, id: string, answered: Answered, message: Outgoing, date: Date): Promise<Buffer> {
  const answers = message.replyTo ?? answered.id;
  const references = boundedReferences([...answered.references, ...(answers === null ? [] : [answers])]);
  const mail = new MailComposer({
    from,
    to: answered.to,
    subject: subjectOf(answered.subject),
    date,
    messageId: `<${id}>`,
    ...(answers === null ? {} : { inReplyTo: `<${answers}>` }),
    ...(references.length === 0 ? {} : { references: references.map((each) => `<${each}>`) }),
    headers: {
      // So that no program answers it: RFC 3834, and what Exchange looks for.
      'Auto-Submitted': 'auto-replied',
      'X-Auto-Response-Suppress': 'All',
    },
    text: message.text,
    ...(message.text.trim() === '' ? {} : { html: renderHtml(message.text) }),
    attachments: (message.files ?? []).map(({ name, mime, bytes }) => ({
      filename: nameOf(name),
      content: Buffer.from(bytes),
      ...(mime === null ? {} : { contentType: mime }),
    })),
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return await mail.compile().build();
}

/** Says that it is an answer, once, in whatever language it was said before. */
function subjectOf(subject: string | null): string {
  if (subject === null) return 'Re: (no subject)';
  return /^(?:re|aw|sv|vs|antw|odp|ynt|rif|res|回复|答复|回覆)(?:\[\d{1,3}\])? ?[:：]/i.test(subject)
    ? subject
    : `Re: ${subject}`;
}

/** Without its folder, which stays private, and without what would end the header it stands in. */
function nameOf(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/["\r\n\0]/g, '_') || 'file';
}
