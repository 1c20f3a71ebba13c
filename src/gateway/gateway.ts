import type { AgentRunner } from '../agent/runner.ts';
import type { Readiness } from '../api/backend.ts';
import type { JobRuns } from '../cron/job-runs.ts';
import type { Engine } from '../engine/engine.ts';
import { isLeaseLost } from '../engine/instance.ts';
import { applyResetRules } from '../engine/reset-rules.ts';
import type { MoiraiError } from '../errors/moirai-error.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import type { SessionMemory } from '../memory/session-memory.ts';
import type { EndedHandlers } from '../outbound/notices.ts';
import type { Approvals } from '../people/approvals.ts';
import type { Conversations } from '../turns/conversations.ts';
import { deliverable } from '../turns/reply-target.ts';
import { stoppingText } from '../turns/texts.ts';
import type { Transcripts } from '../turns/transcripts.ts';
import type { Turns } from '../turns/turns.ts';
import { Banner } from './banner.ts';
import { runBoot } from './boot.ts';
import type { ChatPlatforms } from './chat-platforms.ts';
import { createFoundation, type Foundation, type GatewayOptions } from './foundation.ts';
import { composeGateway, type GatewayParts } from './gateway-parts.ts';
import { pluginChecks } from './gateway-plugins.ts';
import { Listeners } from './listeners.ts';

/**
 * A running gateway without its doors: sessions, turns, outbox, upkeep. HTTP, terminals and platforms talk to its
 * `conversations`; everything that has to be remembered is in the store.
 */
export class Gateway {
  readonly engine: Engine;
  readonly runner: AgentRunner;
  readonly turns: Turns;
  readonly conversations: Conversations;
  readonly approvals: Approvals;
  readonly dispatcher: Dispatcher;
  readonly transcripts: Transcripts;
  readonly memory: SessionMemory;
  readonly chat: ChatPlatforms;
  readonly cron: JobRuns;
  readonly #options: GatewayOptions;
  readonly #foundation: Foundation;
  readonly #parts: GatewayParts;
  #listeners: Listeners | null = null;
  #rules: ResetRules;
  #hurry: () => void = () => undefined;

  private constructor(options: GatewayOptions, foundation: Foundation) {
    const parts = composeGateway(options, foundation);
    this.#options = options;
    this.#foundation = foundation;
    this.#parts = parts;
    this.#rules = options.config.sessions;
    this.engine = foundation.engine;
    this.dispatcher = foundation.dispatcher;
    this.runner = parts.runner;
    this.turns = parts.turns;
    this.conversations = parts.conversations;
    this.approvals = parts.approvals;
    this.transcripts = parts.transcripts;
    this.memory = parts.memory;
    this.chat = parts.chat;
    this.cron = parts.cron;
  }

  static async start(options: GatewayOptions): Promise<Gateway> {
    const foundation = await createFoundation(options);
    const gateway = new Gateway(options, foundation);
    await gateway.#begin();
    return gateway;
  }

  /** How many turns run and wait here. */
  get load(): { running: number; waiting: number } {
    return { running: this.turns.running.length, waiting: this.turns.waiting };
  }

  /** What is wrong with the store: looks, unless it did a moment ago. */
  storeProblem(): Promise<MoiraiError | null> {
    return this.#foundation.health.check();
  }

  /** How plugins and the memory of a plugin stand. */
  get pluginChecks(): Readiness['checks'] {
    return pluginChecks(this.#foundation.plugins, this.#options.config.memory.provider);
  }

  /** What is missing of the configured memory, once the plugins that may bring it had their time; null for nothing. */
  async memoryProblem(): Promise<string | null> {
    if (this.pluginChecks.memory !== undefined) await this.#foundation.plugins.loaded();
    return this.pluginChecks.memory?.detail ?? null;
  }

  async drain(reason: string): Promise<void> {
    if (this.conversations.draining) return;
    this.conversations.draining = true;
    this.turns.pauseNew();
    await this.cron.pause();
    await this.#announce('gateway:draining', reason);
  }

  async undrain(): Promise<void> {
    this.conversations.draining = false;
    this.turns.resume();
    this.cron.start();
  }

  /** New rules count from the next transition on, and reach every session that is open. Says how many that changed. */
  useRules(rules: ResetRules): Promise<number> {
    this.#rules = rules;
    this.engine.store.useRules(rules);
    return applyResetRules(this.engine, rules);
  }

  /** Does not wait any longer for turns to finish. */
  hurry(): void {
    this.#hurry();
  }

  /** Finishes what can be finished in time, cuts the rest so that the next process goes on with it, and leaves. */
  async stop(reason: Exclude<ResumeReason, 'crash'>): Promise<void> {
    try {
      await this.#leave(reason);
    } catch (thrown) {
      await this.#abandon();
      if (!isLeaseLost(thrown)) throw thrown;
    } finally {
      this.#foundation.health.stop();
    }
    this.#options.log.info('stopped', { reason });
  }

  async #leave(reason: Exclude<ResumeReason, 'crash'>): Promise<void> {
    const { config } = this.#options;
    const hurry = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    await this.chat.stopReceiving();
    await this.drain(reason);
    const banner = new Banner(() => this.#tellUnfinished(reason), config.gateway.drainTimeoutMs);
    await this.turns.halt(reason, config.gateway.drainTimeoutMs, hurry);
    await this.cron.idle();
    await banner.down();
    await this.#parts.upkeep.stop();
    await this.#parts.outbox.stop();
    await this.#announce('gateway:shutdown', reason);
    await this.#closeReaders();
    await this.chat.leave();
    await this.engine.stop();
  }

  /** The lease is lost, or nothing can be written: others settle what was under way here. */
  async #abandon(): Promise<void> {
    this.conversations.draining = true;
    void this.chat.stopReceiving();
    void this.cron.pause();
    await this.turns.abandon();
    await this.#parts.upkeep.stop();
    await this.#parts.outbox.stop();
    await this.#closeReaders();
  }

  /** Everything that reads the log, then what runs their code. */
  async #closeReaders(): Promise<void> {
    await Promise.all([this.memory.stop(), this.dispatcher.stop()]);
    await Promise.all([this.#listeners?.stop(), this.#foundation.plugins.stop()]);
    await this.#foundation.extensions.stop();
    this.#parts.ended.stop();
    this.approvals.stop();
    await this.runner.close();
  }

  async #begin(): Promise<void> {
    const { config, log, primary, environment } = this.#options;
    const { engine, dispatcher } = this;
    // Before the startup is announced: they hear it too.
    const ended: EndedHandlers = {
      cron: (session, eventId) => this.cron.ended(session, eventId),
      child: (session, eventId) => this.#parts.children.ended(session, eventId),
    };
    const { extensions, plugins } = this.#foundation;
    const deps = { config, engine, dispatcher, extensions, log, environment, ended, rules: () => this.#rules };
    this.#listeners = primary ? await Listeners.start(deps) : null;
    await this.memory.start();
    this.#parts.outbox.refresh();
    this.#parts.ended.start();
    this.approvals.start();
    // Not waited for: starting must not depend on how much there is to settle.
    void this.#parts.upkeep
      .start()
      .catch((error: unknown) => log.error('settling what was left failed; trying again', { error }))
      // Turns that go on have their plugins' tools and gates.
      .then(() => plugins.loaded())
      .then(() => (primary && !this.conversations.draining ? this.#carryOn() : undefined));
    await this.#announce('gateway:startup', null);
    // Not waited for either: it is a turn, and takes as long as one.
    if (primary) this.#openDoors();
    if (primary) void plugins.loaded().then(() => runBoot({ home: config.home, engine, turns: this.turns, log }));
  }

  #openDoors(): void {
    this.chat.start();
    this.#foundation.plugins.onChange(() => this.chat.refresh());
  }

  /** Once it is settled what the dead left: their runs of jobs are in nobody's way then. */
  #carryOn(): void {
    this.turns.keepAdopting();
    this.cron.start();
  }

  async #announce(type: `gateway:${'startup' | 'draining' | 'shutdown'}`, reason: string | null): Promise<void> {
    if (!this.#options.primary) return;
    await this.engine.announce({ type, fields: { platforms: [...this.chat.names], reason } });
  }

  /** Tells those whose turn will not be done in time. */
  async #tellUnfinished(reason: Exclude<ResumeReason, 'crash'>): Promise<void> {
    const runs = this.turns.running.filter(({ session }) => deliverable(session));
    const id = (turnId: string): string => `${turnId}:${this.engine.instance}:stopping`;
    await Promise.allSettled(
      runs.map(({ session, turn }) =>
        this.chat.tell(session, stoppingText(reason, this.#rules.resumeWindowMs), id(turn.id)),
      ),
    );
  }
}
