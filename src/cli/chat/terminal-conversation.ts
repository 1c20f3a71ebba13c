import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { Approval } from '../../agent/runner.ts';
import type { Config } from '../../config/config.ts';
import { Gateway } from '../../gateway/gateway.ts';
import type { Session } from '../../lifecycle/session.ts';
import { buildKey } from '../../lifecycle/session-key.ts';
import type { Logger } from '../../log/logger.ts';
import type { PendingApproval } from '../../people/approvals.ts';
import { processTimers } from '../../queue/timers.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/port.ts';
import type { ConversationRef } from '../../store/transactions/conversations.ts';
import type { ReceiveResult } from '../../turns/conversations.ts';
import { EndedSessions } from '../../turns/ended-sessions.ts';
import { readConfig } from '../configuration.ts';
import { endReliably } from '../end-session-reliably.ts';
import { makeRunner } from '../gateway/make-runner.ts';
import { packageVersion } from '../package-version.ts';
import { warn } from '../report-error.ts';
import { makeHome, type Settings } from '../settings.ts';
import { noticeOfEnd } from './session-notices.ts';

/** Whoever sits at the terminal. */
export interface ReplyPresenter {
  /** The agent wants to do something it may not do unasked. */
  approvalRequested(pending: PendingApproval): void;
  /** Something is to be known that nobody asked for. */
  notice(text: string): void;
  /** This process was away for longer than its lease: the conversation is over, and its session given up. */
  lost(): void;
}

export interface ConversationOptions {
  readonly settings: Settings;
  readonly log: Logger;
  /** The store on this thread: quick to open, but while it is busy nothing else happens. */
  readonly inline: boolean;
  readonly presenter: ReplyPresenter;
}

/**
 * A terminal's conversation with the agent: a gateway of its own in this process, beside whichever others share the store. Its
 * session is attached: it ends with `end`, and is reaped when this process goes without a word.
 */
export class TerminalConversation {
  readonly gateway: Gateway;
  readonly conversation: ConversationRef;
  readonly #store: Store;
  readonly #config: Config;
  readonly #presenter: ReplyPresenter;
  readonly #ended: EndedSessions;
  /** Sessions whose end was told: it is heard of twice. */
  readonly #reportedEnds = new Set<string>();
  #last: string | null = null;
  #leaving = false;
  #lost = false;

  private constructor(store: Store, gateway: Gateway, config: Config, { log, presenter }: ConversationOptions) {
    this.#store = store;
    this.gateway = gateway;
    this.#config = config;
    this.#presenter = presenter;
    this.conversation = terminalConversation();
    this.#ended = new EndedSessions(store, processTimers, log, (id) => {
      void this.#tellEnd(id).catch(() => undefined); // The store is away; that is told elsewhere.
    });
    gateway.approvals.watch((pending) => presenter.approvalRequested(pending));
    this.#ended.start();
  }

  static async open(options: ConversationOptions): Promise<TerminalConversation> {
    const { settings, log, inline, presenter } = options;
    makeHome(settings.home);
    const config = await readConfig(settings);
    const store = await openStore(config.store.url, config.home, config.sessions, { inline });
    try {
      let opened: TerminalConversation | null = null;
      const gateway = await Gateway.start({
        environment: process.env,
        ...{ config, store, log, platforms: [], restart: null, primary: false },
        version: packageVersion(),
        makeRunner: (ports) => makeRunner(config, { ...ports, environment: process.env }, log),
        onNote: ({ key }, text) => {
          if (key === opened?.conversation.key) presenter.notice(text);
        },
        lost: () => {
          if (opened !== null) opened.#lost = true;
          presenter.lost();
        },
      });
      opened = new TerminalConversation(store, gateway, config, options);
      return opened;
    } catch (thrown) {
      await store.close();
      throw thrown;
    }
  }

  get model(): string {
    return this.gateway.runner.description;
  }

  async say(text: string): Promise<ReceiveResult> {
    const result = await this.gateway.conversations.receive({ conversation: this.conversation, text, originRef: null });
    // Shown before the reply, which would otherwise come as if from somebody who remembers.
    if (result.type === 'turn' && result.received.ended !== null) await this.#tellEnd(result.received.ended.id);
    const session = result.type === 'turn' ? result.received.session : result.session;
    this.#last = session?.id ?? this.#last;
    return result;
  }

  /** Goes on from any session there is: the operator owns them all. Throws `session_not_found`, `session_ambiguous`. */
  async resume(idOrPrefix: string): Promise<Session> {
    const { engine } = this.gateway;
    const from = await engine.store.read('findSession', { idOrPrefix });
    const { session } = await engine.continueFrom(from.id, 'resume', {
      trigger: 'cli',
      conversation: this.conversation,
    });
    this.#last = session.id;
    return session;
  }

  answer({ key }: PendingApproval, approval: Approval): void {
    this.gateway.approvals.answer(key, approval, null);
  }

  session(): Promise<Session | null> {
    return this.#store.read('openSession', { key: this.conversation.key });
  }

  /** Stops what the agent is doing; false when it does nothing. */
  async stopTurn(): Promise<boolean> {
    const session = await this.session();
    return session !== null && this.gateway.turns.stop(session.id, { type: 'told', by: 'stop' });
  }

  /** Ends the session as `cli_close` and leaves; returns the session that ended, or was given up. */
  async end(): Promise<string | null> {
    this.#leaving = true;
    this.#ended.stop();
    let ended: string | null = null;
    try {
      await this.gateway.drain('cli_close');
      await endReliably(`this terminal's session`, async () => {
        ended = await this.#close();
      });
      const stopped = this.gateway.stop('shutdown');
      this.gateway.hurry(); // What still runs had its time to stop.
      await stopped;
    } catch (thrown) {
      // Whoever comes next settles what could not be left in order.
      if (!this.#lost) warn(thrown);
    } finally {
      await this.#store.close();
    }
    return ended;
  }

  async #close(): Promise<string | null> {
    if (this.#lost) return this.#last;
    const session = await this.session();
    if (session === null) return null;
    await this.gateway.turns.stop(session.id, { type: 'told', by: 'stop' });
    await this.gateway.engine.end(session.id, { reason: 'cli_close', trigger: 'cli' });
    return session.id;
  }

  async #tellEnd(sessionId: string): Promise<void> {
    const session = await this.#store.read('getSession', { sessionId });
    if (session?.key !== this.conversation.key || this.#leaving || this.#reportedEnds.has(sessionId)) return;
    this.#reportedEnds.add(sessionId);
    const text = noticeOfEnd(session, this.#config.sessions);
    if (text !== null) this.#presenter.notice(text);
  }
}

function terminalConversation(): ConversationRef {
  const key = buildKey({ profile: 'main', platform: 'cli', type: 'dm', chat: randomUUID() });
  const origin = { cwd: process.cwd(), pid: process.pid };
  return { key, kind: 'cli', platform: 'cli', userId: operatorName(), origin, attached: true };
}

/** By which the agent finds what the same person said in other terminals. */
function operatorName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null; // A user without a name, as in some containers.
  }
}
