import type { ImapFlow, MailboxObject } from 'imapflow';
import { ChatQueues } from '../chat-queues.ts';
import type { Connection } from '../connection.ts';
import type { Inbox, PlatformRuntime } from '../platform.ts';
import type { MailAccount } from './account.ts';
import { whyAutomatic } from './automatic.ts';
import { failedMessage } from './bounce.ts';
import { ExchangeGuard } from './exchange-guard.ts';
import { isUnreadable } from './failures.ts';
import { type FetchedMail, fetchBody, fetchMail, fetchParts } from './fetching.ts';
import { sentFolder } from './imap.ts';
import { readOwnId } from './own-ids.ts';
import { readMail } from './parse.ts';
import { Position } from './position.ts';
import { findPosition } from './resuming.ts';
import { answeredBy, answersUs, rootOf } from './threads.ts';
import { isProven } from './trust.ts';

export interface IntakeDeps {
  readonly account: MailAccount;
  readonly runtime: PlatformRuntime;
  readonly startedAt: number;
  readonly inbox: Inbox;
  readonly connection: Connection;
  /** Ends the trying; what the inbox has in hand it finishes. */
  readonly signal: AbortSignal;
  /** There is something to mark at the server. */
  readonly taken: () => void;
}

/** So many mails wait for the inbox at most; the others wait at the server. */
const MOST_OPEN = 100;
/** What the server cannot give out so often is left where it is. */
const MOST_REFUSALS = 3;
/** The same, where it ends the connection over it or asks for patience: that may have another cause. */
const MOST_FAILURES = 10;
const MOST_NAMED = 1000;

/** Brings what comes into the mailbox to the inbox: one at a time per thread, in order, threads beside each other. */
export class Intake {
  readonly #deps: IntakeDeps;
  readonly #position: Position;
  readonly #guard: ExchangeGuard;
  readonly #queues = new ChatQueues();
  readonly #refused = new Set<string>();
  /** The newest mail that was looked at. */
  #last = 0;
  /** Up to here a mail may be one that was taken under another number. */
  #renumbered = 0;
  #waiting: number[] = [];
  #seen: number[] = [];
  #copies: number[] = [];
  /** The mail that was asked for last, and how often that failed. */
  #trouble = { uid: 0, refusals: 0, failures: 0 };

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#position = new Position(deps.runtime, deps.startedAt);
    this.#guard = new ExchangeGuard(deps.runtime);
  }

  /** Writes down that there was a start; what comes from now on is for us. */
  async start(): Promise<void> {
    await this.#position.start();
  }

  /** Finds out where to go on in the mailbox that was opened. */
  async enter(client: ImapFlow, mailbox: MailboxObject): Promise<void> {
    const found = await findPosition(client, mailbox, this.#position, this.#deps.runtime);
    if (found === null) return;
    this.#last = found.after;
    this.#renumbered = found.renumberedTo;
    this.#seen = [];
    this.#copies = [];
  }

  /** Asks for what is new, and takes as much of it as the inbox can have. */
  async catchUp(client: ImapFlow): Promise<void> {
    const found = await client.search({ uid: `${this.#last + 1}:*` }, { uid: true });
    if (!Array.isArray(found)) throw connectionLost();
    // A range that ends with the newest names it also where it lies before the beginning.
    this.#waiting = found.filter((uid) => uid > this.#last).sort((a, b) => a - b);
    await this.goOn(client);
  }

  /** Takes more of what waits at the server, as far as there is room. */
  async goOn(client: ImapFlow): Promise<void> {
    while (this.#position.open < MOST_OPEN && !this.#deps.signal.aborted) {
      const [uid] = this.#waiting;
      if (uid === undefined) return;
      await this.#look(client, uid);
      this.#waiting.shift();
      this.#last = uid;
    }
  }

  /** Shows people who look into the mailbox what was taken, and puts our own mails to those that were sent. */
  async mark(client: ImapFlow): Promise<void> {
    const [seen, copies] = [this.#seen.splice(0), this.#copies.splice(0)];
    if (seen.length + copies.length === 0) return;
    try {
      await client.messageFlagsAdd([...seen, ...copies].join(','), ['\\Seen'], { uid: true });
      const folder = copies.length === 0 ? null : await sentFolder(client);
      if (folder !== null) await client.messageMove(copies.join(','), folder, { uid: true });
    } catch (thrown) {
      // In a mailbox where nothing may be changed there are no marks, and all else goes on.
      if (!client.usable) throw thrown;
    }
  }

  /** Lets the inbox finish what it has, and keeps how far it came. */
  async settle(): Promise<void> {
    await this.#queues.settle();
    await this.#position.flush();
  }

  async #look(client: ImapFlow, uid: number): Promise<void> {
    const mail = this.#isGivenUp(uid) ? null : await this.#read(client, uid, () => fetchMail(client, uid));
    if (mail === null) return this.#position.begin(uid, `gone:${uid}`, { isLeftOut: true })();
    const { head, parts } = mail;
    const { account, runtime, inbox } = this.#deps;
    const leaveOut = (): void => this.#position.begin(uid, head.id, { isLeftOut: true })();
    if (uid <= this.#renumbered && this.#position.hasSeen(head.id)) return leaveOut();
    if (head.from?.address === account.address) {
      if (readOwnId(head.id, account.address) !== null) this.#copies.push(uid);
      return leaveOut();
    }
    if (parts.report !== null) {
      const { status, original } = parts.report;
      const raw = await this.#read(client, uid, () => fetchParts(client, uid, [status, original]));
      const contentOf = (part: string): Uint8Array => raw?.get(part)?.content ?? new Uint8Array();
      const event = await failedMessage({ status: contentOf(status), original: contentOf(original) }, account.address);
      if (event === null) return leaveOut();
      return this.#bring(mail, event.place.chat, () => inbox.happened(event));
    }
    if (head.from === null || whyAutomatic(head) !== null) return leaveOut();
    const from = head.from.address;
    if (account.authservId !== null && !isProven(head, account.authservId)) {
      this.#refuse(from);
      return leaveOut();
    }
    const root = rootOf(head, account.address);
    const begins = head.references.length + head.inReplyTo.length === 0;
    const isAnswer = answersUs(head, account.address);
    const at = mail.at || runtime.now();
    if (!this.#guard.admits(from, { root, begins, answersUs: isAnswer, at })) return leaveOut();
    const known = this.#isKnown(answeredBy(head));
    const body = await this.#read(client, uid, () => fetchBody(client, mail, this.#position.validity));
    if (body === null) return leaveOut();
    const message = await readMail(head, body, { address: account.address, at, known });
    this.#bring(mail, root, () => inbox.receive(message));
  }

  /** Whether the conversation has what these mails say: they are ours, or were taken. */
  #isKnown(ids: readonly string[]): boolean {
    const { address } = this.#deps.account;
    return ids.length > 0 && ids.every((id) => readOwnId(id, address) !== null || this.#position.hasTaken(id));
  }

  /** Asks for a mail or a part of it; null when it is not there any more. */
  async #read<T>(client: ImapFlow, uid: number, ask: () => Promise<T | null>): Promise<T | null> {
    try {
      const found = await ask();
      // Where the connection ended meanwhile, nothing came that says that the mail is gone.
      if (found === null && (!client.usable || client.mailbox === false)) throw connectionLost();
      return found;
    } catch (thrown) {
      if (this.#trouble.uid !== uid) this.#trouble = { uid, refusals: 0, failures: 0 };
      this.#trouble.failures += 1;
      if (isUnreadable(thrown)) this.#trouble.refusals += 1;
      throw thrown;
    }
  }

  /** A mail that nobody can read keeps no other waiting. */
  #isGivenUp(uid: number): boolean {
    const { refusals, failures, ...trouble } = this.#trouble;
    if (trouble.uid !== uid || (refusals < MOST_REFUSALS && failures < MOST_FAILURES)) return false;
    this.#deps.runtime.warn('a mail cannot be read and is left out', { uid });
    return true;
  }

  /** Hands it over until it is taken; what the same thread says later waits for it. */
  #bring({ uid, head }: FetchedMail, thread: string, give: () => Promise<void>): void {
    const { signal, connection, runtime, taken } = this.#deps;
    const done = this.#position.begin(uid, head.id);
    const untilTaken = async (): Promise<void> => {
      while (!signal.aborted) {
        try {
          await give();
          done();
          connection.taken();
          this.#seen.push(uid);
          return taken();
        } catch (thrown) {
          runtime.warn('a message was not taken and will be brought again', { error: String(thrown) });
          await connection.untaken(signal);
        }
      }
    };
    this.#queues.run(thread, untilTaken).catch((thrown: unknown) => {
      runtime.warn('a message was not taken and will be brought again at the next start', { error: String(thrown) });
    });
  }

  /** Each sender once: whoever forges mail sends a lot of it. */
  #refuse(from: string): void {
    if (this.#refused.has(from)) return;
    if (this.#refused.size >= MOST_NAMED) this.#refused.clear();
    this.#refused.add(from);
    this.#deps.runtime.warn('mail was refused: it has not passed DMARC at our server', { from });
  }
}

/** As the library says it for a call that was under way. */
export function connectionLost(): Error {
  return Object.assign(new Error('the connection ended'), { code: 'EConnectionClosed' });
}
