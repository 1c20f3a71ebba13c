import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { createRunner } from '../../agent/create-runner.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { Gateway } from '../../gateway/gateway.ts';
import { policyFor, type ResetRules } from '../../lifecycle/reset-policy.ts';
import type { Session } from '../../lifecycle/session.ts';
import { buildKey } from '../../lifecycle/session-key.ts';
import type { ApprovalAnswer, ResetCause } from '../../lifecycle/states.ts';
import type { Fields, Logger } from '../../log/logger.ts';
import type { PendingApproval } from '../../people/approvals.ts';
import { processTimers } from '../../queue/timers.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/port.ts';
import type { ConversationRef } from '../../store/transactions/conversations.ts';
import type { ReceiveResult } from '../../turns/conversations.ts';
import { EndedSessions } from '../../turns/ended-sessions.ts';
import { expiredText, rolledOverText } from '../../turns/texts.ts';
import { readConfig } from '../configuration.ts';
import { endReliably } from '../end-session-reliably.ts';
import { packageVersion } from '../package-version.ts';
import { warn } from '../report-error.ts';
import { makeHome, type Settings } from '../settings.ts';

/** What shows a conversation to the person at the terminal. */
export interface ReplyPresenter {
  /** The agent wants to do something it may not do unasked. */
  approvalRequested(pending: PendingApproval): void;
  /** A notice that answers no message. */
  notice(text: string): void;
  /** This process was away for longer than its lease: the conversation is over, and its session given up. */
  lost(): void;
}

/**
 * A terminal's conversation with the agent: a gateway of its own in this process, beside whichever others share the store. Its
 * session is attached: it ends with `end`, and is reaped when this process goes without a word.
 */
export class TerminalConversation {
  readonly #ref: ConversationRef;
  readonly #gateway: Gateway;
  readonly #store: Store;
  readonly #rules: ResetRules;
  readonly #presenter: ReplyPresenter;
  readonly #ended: EndedSessions;
  /** Sessions whose end was shown: each end is reported twice. */
  readonly #reportedEnds = new Set<string>();
  #last: string | null = null;
  #leaving = false;
  #lost = false;

  private constructor(
    ref: ConversationRef,
    store: Store,
    gateway: Gateway,
    rules: ResetRules,
    presenter: ReplyPresenter,
  ) {
    this.#ref = ref;
    this.#store = store;
    this.#gateway = gateway;
    this.#rules = rules;
    this.#presenter = presenter;
    this.#ended = new EndedSessions(store, processTimers, quietLog(presenter), (id) => {
      void this.#tellEnd(id).catch(() => undefined); // The store is away, which is logged where it is read.
    });
    gateway.approvals.watch((pending) => presenter.approvalRequested(pending));
    this.#ended.start();
  }

  /** `inline` keeps the store on this thread: quick to open, but while it is busy nothing else happens. */
  static async open(settings: Settings, presenter: ReplyPresenter, inline: boolean): Promise<TerminalConversation> {
    makeHome(settings.home);
    const ref = terminalConversation();
    const log = quietLog(presenter);
    const config = await readConfig(settings);
    const store = await openStore(config.store.url, config.home, config.sessions, { inline });
    try {
      let opened: TerminalConversation | null = null;
      const gateway = await Gateway.start({
        environment: process.env,
        ...{ config, store, log, platforms: [], restart: null, primary: false },
        version: packageVersion(),
        makeRunner: (ports) => createRunner(config, { ...ports, environment: process.env }, log),
        onNote: ({ key }, text) => {
          if (key === ref.key) presenter.notice(text);
        },
        lost: () => {
          if (opened !== null) opened.#lost = true;
          presenter.lost();
        },
      });
      opened = new TerminalConversation(ref, store, gateway, config.sessions, presenter);
      return opened;
    } catch (thrown) {
      await store.close();
      throw thrown;
    }
  }

  get model(): string {
    return this.#gateway.runner.description;
  }

  async say(text: string): Promise<ReceiveResult> {
    const result = await this.#gateway.conversations.receive({ conversation: this.#ref, text, originRef: null });
    // Nothing is awaited before it is shown: the reply comes from a fresh session and knows nothing of the ended one.
    if (result.type === 'turn' && result.received.ended !== null) {
      const { id, cause } = result.received.ended;
      this.#reportEnd(id, rolledOverText(cause, policyFor(this.#rules, this.#ref.key).idleMs, id));
    }
    const session = result.type === 'turn' ? result.received.session : result.session;
    this.#last = session?.id ?? this.#last;
    return result;
  }

  /** Goes on from any session there is: the operator owns them all. Throws `session_not_found`, `session_ambiguous`. */
  async resume(idOrPrefix: string): Promise<Session> {
    const from = await this.#store.read('findSession', { idOrPrefix });
    const options = { trigger: 'cli', conversation: this.#ref } as const;
    const { session } = await this.#gateway.engine.continueFrom(from.id, 'resume', options);
    this.#last = session.id;
    return session;
  }

  async answer({ id }: PendingApproval, decision: ApprovalAnswer, reason: string | null = null): Promise<void> {
    await this.#gateway.approvals.answerById(id, decision, { name: 'cli', person: null, admin: true }, reason);
  }

  /** Stops what the agent is doing; false when it does nothing. */
  async stopTurn(): Promise<boolean> {
    const session = await this.#session();
    return session !== null && this.#gateway.turns.stop(session.id, { type: 'told', by: 'stop' });
  }

  /** Ends the session as `cli_close` and leaves; returns the session that ended, or was given up. */
  async end(): Promise<string | null> {
    this.#leaving = true;
    this.#ended.stop();
    let ended: string | null = null;
    try {
      await this.#gateway.drain('cli_close');
      await endReliably(`this terminal's session`, async () => {
        ended = await this.#close();
      });
      const stopped = this.#gateway.stop('shutdown');
      this.#gateway.hurry(); // What still runs had its time to stop.
      await stopped;
    } catch (thrown) {
      // The next process that opens the store settles what could not be left in order.
      if (!this.#lost) warn(thrown);
    } finally {
      await this.#store.close();
    }
    return ended;
  }

  async #close(): Promise<string | null> {
    if (this.#lost) return this.#last;
    const session = await this.#session();
    if (session === null) return null;
    await this.#gateway.turns.stop(session.id, { type: 'told', by: 'stop' });
    await this.#gateway.engine.end(session.id, { reason: 'cli_close', trigger: 'cli' });
    return session.id;
  }

  #session(): Promise<Session | null> {
    return this.#store.read('openSession', { key: this.#ref.key });
  }

  async #tellEnd(sessionId: string): Promise<void> {
    const session = await this.#store.read('getSession', { sessionId });
    if (session?.key !== this.#ref.key || this.#leaving) return;
    this.#reportEnd(sessionId, noticeOfEnd(session, this.#rules));
  }

  #reportEnd(sessionId: string, text: string | null): void {
    if (this.#reportedEnds.has(sessionId)) return;
    this.#reportedEnds.add(sessionId);
    if (text !== null) this.#presenter.notice(text);
  }
}

function terminalConversation(): ConversationRef {
  const key = buildKey({ profile: 'main', platform: 'cli', type: 'dm', chat: randomUUID() });
  const origin = { cwd: process.cwd(), pid: process.pid };
  return { key, kind: 'cli', platform: 'cli', userId: operatorName(), origin, attached: true };
}

/** The user by whom the agent finds what the same person wrote in other terminals. */
function operatorName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null; // A user without a name, as in some containers.
  }
}

/** What to say about the end of a terminal's session; null for what its own user did. */
function noticeOfEnd(session: Session, rules: ResetRules): string | null {
  const { id, key, endReason, endCause } = session;
  const { idleMs } = policyFor(rules, key);
  switch (endReason) {
    case 'auto_reset':
      return rolledOverText(endCause as ResetCause, idleMs, id);
    case 'idle_expiry':
    case 'daily_reset':
      return expiredText(endReason, idleMs, id);
    case 'admin_close':
    case 'api_close':
      return `This session was ended from outside (${endReason}). Your next message starts a fresh one; /resume ${id} brings this one back.`;
    default:
      return null;
  }
}

/**
 * A log for a terminal with a conversation in it. It shows errors only, by their fixed sentence and code: warnings pass by
 * themselves, and why a turn failed is its reply.
 */
function quietLog(presenter: ReplyPresenter): Logger {
  const say = (message: string, fields: Fields = {}): void => {
    const { error } = fields;
    presenter.notice(error === undefined ? message : `${message} [${MoiraiError.wrap(error).code}]`);
  };
  const wordy = process.env.MOIRAI_DEBUG === '1' ? say : (): void => undefined;
  const log: Logger = { debug: () => undefined, info: () => undefined, warn: wordy, error: say, child: () => log };
  return log;
}
