import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { Approval } from '../../agent/runner.ts';
import type { Config } from '../../config/config.ts';
import { processTimers } from '../../events/timers.ts';
import type { Asked } from '../../gateway/approvals.ts';
import type { Heard } from '../../gateway/conversations.ts';
import { EndedSessions } from '../../gateway/ended-sessions.ts';
import { Gateway } from '../../gateway/gateway.ts';
import type { Session } from '../../lifecycle/session.ts';
import { buildKey } from '../../lifecycle/session-key.ts';
import type { Logger } from '../../log/logger.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/port.ts';
import type { Party } from '../../store/transactions/conversations.ts';
import { readConfig } from '../configuration.ts';
import { makeRunner } from '../gateway/make-runner.ts';
import { insistOnEnd } from '../insist-on-end.ts';
import { packageVersion } from '../package-version.ts';
import { warn } from '../report-error.ts';
import { makeHome, type Settings } from '../settings.ts';
import { noticeOfEnd } from './session-notices.ts';

/** Whoever sits at the terminal. */
export interface Attendant {
  /** The agent wants to do something it may not do unasked. */
  asked(asked: Asked): void;
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
  readonly attendant: Attendant;
}

/**
 * A terminal's conversation with the agent: a gateway of its own in this process, beside whichever others share the store. Its
 * session is attached: it ends with `end`, and is reaped when this process goes without a word.
 */
export class TerminalConversation {
  readonly gateway: Gateway;
  readonly party: Party;
  readonly #store: Store;
  readonly #config: Config;
  readonly #attendant: Attendant;
  readonly #ended: EndedSessions;
  /** Sessions whose end was told: it is heard of twice. */
  readonly #told = new Set<string>();
  #last: string | null = null;
  #leaving = false;
  #lost = false;

  private constructor(store: Store, gateway: Gateway, config: Config, { log, attendant }: ConversationOptions) {
    this.#store = store;
    this.gateway = gateway;
    this.#config = config;
    this.#attendant = attendant;
    this.party = terminalParty();
    this.#ended = new EndedSessions(store, processTimers, log, (id) => {
      void this.#tellEnd(id).catch(() => undefined); // The store is away; that is told elsewhere.
    });
    gateway.approvals.watch((asked) => attendant.asked(asked));
    this.#ended.start();
  }

  static async open(options: ConversationOptions): Promise<TerminalConversation> {
    const { settings, log, inline, attendant } = options;
    makeHome(settings.home);
    const config = await readConfig(settings);
    const store = await openStore(config.store.url, config.home, config.sessions.rules, { inline });
    try {
      let opened: TerminalConversation | null = null;
      const gateway = await Gateway.start({
        environment: process.env,
        ...{ config, store, log, platforms: [], restart: null, keeper: false },
        version: packageVersion(),
        makeRunner: (ports) => makeRunner(config, { ...ports, environment: process.env }, log),
        told: ({ key }, text) => {
          if (key === opened?.party.key) attendant.notice(text);
        },
        lost: () => {
          if (opened !== null) opened.#lost = true;
          attendant.lost();
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

  async say(text: string): Promise<Heard> {
    const heard = await this.gateway.conversations.say({ party: this.party, text, originRef: null });
    // Told before the reply, which would otherwise come as if from somebody who remembers.
    if (heard.type === 'turn' && heard.received.ended !== null) await this.#tellEnd(heard.received.ended.id);
    const session = heard.type === 'turn' ? heard.received.session : heard.session;
    this.#last = session?.id ?? this.#last;
    return heard;
  }

  /** Goes on from any session there is: the operator owns them all. Throws `session_not_found`, `session_ambiguous`. */
  async resume(idOrPrefix: string): Promise<Session> {
    const { engine } = this.gateway;
    const from = await engine.store.read('findSession', { idOrPrefix });
    const { session } = await engine.continueFrom(from.id, 'resume', { trigger: 'cli', party: this.party });
    this.#last = session.id;
    return session;
  }

  answer({ key }: Asked, approval: Approval): void {
    this.gateway.approvals.answer(key, approval, null);
  }

  session(): Promise<Session | null> {
    return this.#store.read('openSession', { key: this.party.key });
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
      await insistOnEnd(`this terminal's session`, async () => {
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
    if (session?.key !== this.party.key || this.#leaving || this.#told.has(sessionId)) return;
    this.#told.add(sessionId);
    const text = noticeOfEnd(session, this.#config.sessions.rules);
    if (text !== null) this.#attendant.notice(text);
  }
}

function terminalParty(): Party {
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
