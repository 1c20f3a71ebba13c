import { Connection } from '../connection.ts';
import { pause, withDeadline } from '../deadline.ts';
import type { Inbox, Outgoing, Place, Platform, PlatformRuntime, PlatformState, SentMessage } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import { EMAIL_ABILITIES } from './abilities.ts';
import type { MailAccount } from './account.ts';
import { mailboxFailure, sendFailureOf, troubleOf } from './failures.ts';
import { findMail, readFile } from './files.ts';
import { sentFolder, withMailbox } from './imap.ts';
import { Intake } from './intake.ts';
import { Bell, listen } from './listening.ts';
import { MailSender, overSmtp } from './send.ts';

export interface EmailOptions {
  readonly account: MailAccount;
  readonly runtime: PlatformRuntime;
  /** Epoch milliseconds: at its very first start it takes what has come since then. */
  readonly startedAt: number;
}

const CALL_MS = 60_000;
const DOWNLOAD_MS = 300_000;
/** A server puts a mail into a mailbox a moment after it has taken it. */
const LOOKS = 5;
const BETWEEN_LOOKS_MS = 2000;

interface Session {
  readonly intake: Intake;
  readonly stopped: AbortController;
  readonly bell: Bell;
  run: Promise<void>;
}

/** A mailbox, by IMAP and SMTP. */
export class Email implements Platform {
  readonly name: string;
  readonly abilities = EMAIL_ABILITIES;
  readonly #account: MailAccount;
  readonly #runtime: PlatformRuntime;
  readonly #startedAt: number;
  readonly #redact: Redact;
  readonly #connection: Connection;
  readonly #sender: MailSender;
  #session: Session | null = null;

  constructor({ account, runtime, startedAt }: EmailOptions) {
    this.name = runtime.name;
    this.#account = account;
    this.#runtime = runtime;
    this.#startedAt = startedAt;
    const redact = redaction(account.imap.password, account.smtp.password);
    this.#redact = redact;
    this.#connection = new Connection({ label: 'Email', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#sender = new MailSender(account, runtime, redact);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const [account, runtime, connection] = [this.#account, this.#runtime, this.#connection];
    const [stopped, bell] = [new AbortController(), new Bell()];
    const { signal } = stopped;
    const taken = (): void => bell.ring('taken');
    const intake = new Intake({ account, runtime, startedAt: this.#startedAt, inbox, connection, signal, taken });
    if (account.authservId === null) {
      runtime.warn('anybody can write to the agent in the name of others: authserv_id is not set', {
        address: account.address,
      });
    }
    connection.open(inbox);
    const run = listen({ account, runtime, connection, intake, bell }, signal).catch((thrown: unknown) => {
      runtime.warn('the mailbox is listened to no more', { error: this.#redact(String(thrown)) });
    });
    this.#session = { intake, stopped, bell, run };
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    session.bell.ring('closed');
    await session.run;
    await session.intake.settle();
    this.#connection.close();
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sender.send(place, message, signal) };
  }

  /** Each mail goes to our own mailbox too, in the same transaction: if the server has taken it, it is or will be there. */
  async findSent(place: Place, key: string, signal: AbortSignal): Promise<SentMessage | null> {
    const messageId = this.#sender.idOf(place, key);
    for (let look = 1; ; look += 1) {
      if (await this.#isInMailbox(messageId, signal)) return { messageId };
      if (look === LOOKS) return null;
      await pause(this.#runtime, BETWEEN_LOOKS_MS, signal);
      signal.throwIfAborted();
    }
  }

  async openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const most = Math.min(maxBytes, this.abilities.files.maxBytes);
    return await this.#inMailbox(signal, DOWNLOAD_MS, (client) => readFile(client, ref, most));
  }

  async identify(signal: AbortSignal): Promise<string> {
    const { address, imap, smtp } = this.#account;
    await this.#inMailbox(signal, CALL_MS, async (client) => void (await client.mailboxOpen('INBOX')));
    try {
      await withDeadline(signal, CALL_MS, (deadline) => overSmtp(smtp, deadline, async () => undefined));
    } catch (thrown) {
      throw sendFailureOf(thrown, false, this.#redact);
    }
    return `${address} (${imap.host}, ${smtp.host})`;
  }

  async #isInMailbox(messageId: string, signal: AbortSignal): Promise<boolean> {
    return await this.#inMailbox(signal, CALL_MS, async (client) => {
      for (const folder of ['INBOX', await sentFolder(client)]) {
        if (folder === null) continue;
        await client.mailboxOpen(folder, { readOnly: true });
        if ((await findMail(client, messageId)) !== null) return true;
      }
      return false;
    });
  }

  async #inMailbox<T>(signal: AbortSignal, ms: number, work: Parameters<typeof withMailbox<T>>[2]): Promise<T> {
    try {
      return await withDeadline(signal, ms, (deadline) => withMailbox(this.#account.imap, deadline, work));
    } catch (thrown) {
      throw mailboxFailure(thrown, this.#redact);
    }
  }
}
