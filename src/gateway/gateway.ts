import type { AgentRunner } from '../agent/runner.ts';
import type { Readiness } from '../api/backend.ts';
import { measuring } from '../api/measuring.ts';
import { COMMANDS, slashCommands } from '../commands/catalogue.ts';
import type { ModelConfig } from '../config/config.ts';
import { JobRuns } from '../cron/job-runs.ts';
import { JobService } from '../cron/job-service.ts';
import { schedulePort } from '../cron/schedule-port.ts';
import type { Engine } from '../engine/engine.ts';
import { isLeaseLost } from '../engine/instance.ts';
import { Upkeep } from '../engine/upkeep.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { ExtensionHost } from '../extensions/host/extension-host.ts';
import type { Plugins } from '../extensions/plugins/plugins.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import { SessionMemory } from '../memory/session-memory.ts';
import type { EndedHandlers } from '../outbound/notices.ts';
import { Outbox } from '../outbound/outbox.ts';
import { Approvals } from '../people/approvals.ts';
import { processTimers } from '../queue/timers.ts';
import { traces } from '../tracing/turn-traces.ts';
import { Children } from '../turns/children.ts';
import { Conversations } from '../turns/conversations.ts';
import { EndedSessions } from '../turns/ended-sessions.ts';
import { type Observer, observeWith } from '../turns/observer.ts';
import { deliverable } from '../turns/reply-target.ts';
import { stoppingText } from '../turns/texts.ts';
import { Transcripts } from '../turns/transcripts.ts';
import { Turns } from '../turns/turns.ts';
import { askPeople } from './ask-people.ts';
import { Banner } from './banner.ts';
import { runBoot } from './boot.ts';
import { ChatPlatforms } from './chat-platforms.ts';
import { createFoundation, type Foundation, type GatewayOptions } from './foundation.ts';
import { dispatchGate, pluginChecks, turnPlugins } from './gateway-plugins.ts';
import { Listeners } from './listeners.ts';
import { toolPorts } from './tool-ports.ts';

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
  readonly #upkeep: Upkeep;
  readonly #outbox: Outbox;
  readonly #ended: EndedSessions;
  #listeners: Listeners | null = null;
  readonly #children: Children;
  readonly #plugins: Plugins;
  readonly #extensions: ExtensionHost;
  readonly #observer: Observer;
  #rules: ResetRules;
  #hurry: () => void = () => undefined;

  private constructor(options: GatewayOptions, foundation: Foundation) {
    const { config, log, primary } = options;
    const { engine, ids, plugins, providers } = foundation;
    this.#options = options;
    this.#plugins = plugins;
    this.#extensions = foundation.extensions;
    this.#rules = config.sessions;
    this.#observer = observerOf(options, engine.instance);
    this.engine = engine;
    this.transcripts = new Transcripts(engine);
    this.dispatcher = foundation.dispatcher;
    this.memory = new SessionMemory({
      ...{ config, engine, log, primary, providers, dispatcher: this.dispatcher, transcripts: this.transcripts },
      runner: () => this.runner,
    });
    const { timezone } = config.sessions.reset;
    const jobs = new JobService({ store: engine.store, timezone, random: Math.random });
    this.approvals = new Approvals(processTimers, config.agent.approvalTimeoutMs);
    const { more = () => [], ...memoryPorts } = this.memory.ports;
    this.runner = options.makeRunner({
      ...toolPorts({
        ...{ engine, rules: config.sessions, children: () => this.#children },
        platform: (name) => this.chat.find(name),
      }),
      schedule: schedulePort(engine, jobs),
      ...memoryPorts,
      more: () => [...plugins.tools(), ...more()],
    });
    this.chat = new ChatPlatforms({
      ...{ config, engine, timers: processTimers, log, senders: options.platforms, approvals: this.approvals },
      configured: options.chat ?? [],
      conversations: () => this.conversations,
      runner: () => this.runner,
      brought: () => plugins.platforms(),
      commands: () => [...COMMANDS, ...plugins.commands()],
      newDeliveryId: () => ids.delivery(),
      onNote: options.onNote ?? (() => undefined),
      wakeOutbox: () => this.#outbox.refresh(),
    });
    this.turns = this.#makeTurns();
    this.cron = new JobRuns({ config, engine, log, primary, jobs, turns: this.turns, chat: this.chat });
    this.#children = new Children({
      ...{ engine, turns: this.turns, log },
      tell: (to, text, id) => this.chat.tell(to, text, id),
      notice: (to, text, id) => this.chat.notice(to, text, id),
    });
    const { runner, turns, approvals, transcripts, memory } = this;
    const commandDeps = {
      ...{ engine, turns, runner, approvals, transcripts, memory, jobs },
      children: this.#children,
      ...{ restart: options.restart, prices: pricesOf(config.model), more: () => plugins.commands() },
    };
    this.conversations = new Conversations({
      engine,
      turns,
      commands: slashCommands(commandDeps),
      gate: dispatchGate(plugins),
    });
    this.#outbox = new Outbox({
      ...{ engine, log, random: Math.random },
      senders: () => this.chat.senders,
      observer: this.#observer,
    });
    this.#ended = new EndedSessions(engine.store, processTimers, log, (id) => this.#sessionEnded(id));
    this.#upkeep = new Upkeep(engine, {
      heartbeatMs: config.sessions.heartbeatMs,
      timers: processTimers,
      wallClock: Date.now,
      expire: options.primary,
      ...(options.primary ? { retention: config.sessions.retentionMs } : {}),
      failed: (error) => log.warn('upkeep failed; trying again', { error }),
      lost: options.lost,
    });
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

  /** How plugins and the memory of a plugin stand. */
  get pluginChecks(): Readiness['checks'] {
    return pluginChecks(this.#plugins, this.#options.config.memory.provider);
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

  /** New rules count from the next transition on. */
  useRules(rules: ResetRules): void {
    this.#rules = rules;
    this.engine.store.useRules(rules);
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
      if (!isLeaseLost(thrown)) throw thrown;
      await this.#abandon();
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
    await this.#upkeep.stop();
    await this.#outbox.stop();
    await this.#announce('gateway:shutdown', reason);
    await this.#closeReaders();
    await this.chat.leave();
    await this.engine.stop();
  }

  /** The lease is lost: others settle what was under way here, and nothing may be written any more. */
  async #abandon(): Promise<void> {
    this.conversations.draining = true;
    void this.chat.stopReceiving();
    this.turns.abandon();
    void this.cron.pause();
    await this.#upkeep.stop();
    await this.#outbox.stop();
    await this.#closeReaders();
  }

  /** Everything that reads the log, then what runs their code. */
  async #closeReaders(): Promise<void> {
    await Promise.all([this.memory.stop(), this.dispatcher.stop()]);
    await Promise.all([this.#listeners?.stop(), this.#plugins.stop()]);
    await this.#extensions.stop();
    this.#ended.stop();
    await this.runner.close();
  }

  async #begin(): Promise<void> {
    const { config, log, primary, environment } = this.#options;
    const { engine, dispatcher } = this;
    // Before the startup is announced: they hear it too.
    const ended: EndedHandlers = {
      cron: (session, eventId) => this.cron.ended(session, eventId),
      child: (session, eventId) => this.#children.ended(session, eventId),
    };
    const extensions = this.#extensions;
    const deps = { config, engine, dispatcher, extensions, log, environment, ended, rules: () => this.#rules };
    this.#listeners = primary ? await Listeners.start(deps) : null;
    await this.memory.start();
    this.#outbox.refresh();
    this.#ended.start();
    // Not waited for: starting must not depend on how much there is to settle.
    void this.#upkeep
      .start()
      .catch((error: unknown) => log.error('settling what was left failed; trying again', { error }))
      // Turns that go on have their plugins' tools and gates.
      .then(() => this.#plugins.loaded())
      .then(() => (primary && !this.conversations.draining ? this.#carryOn() : undefined));
    await this.#announce('gateway:startup', null);
    // Not waited for either: it is a turn, and takes as long as one.
    if (primary) this.#openDoors();
    if (primary) void this.#plugins.loaded().then(() => runBoot({ home: config.home, engine, turns: this.turns, log }));
  }

  #openDoors(): void {
    this.chat.start();
    this.#plugins.onChange(() => this.chat.refresh());
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

  #makeTurns(): Turns {
    const { config, log } = this.#options;
    const { engine, runner, transcripts, memory, approvals } = this;
    const observer = this.#observer;
    return new Turns({
      engine,
      timers: processTimers,
      log,
      maxConcurrent: config.gateway.maxConcurrentTurns,
      busyMode: () => config.agent.busyMode,
      admits: (session) => this.chat.admits(session),
      received: observer.received,
      started: (run) => {
        observer.started(run);
        this.chat.started(run);
      },
      runDeps: {
        ...{ runner, memory, plugins: turnPlugins(this.#plugins) },
        timeoutMs: config.agent.turnTimeoutMs,
        transcript: (session) => transcripts.of(session),
        deliveries: (run, text, report) => this.chat.repliesOf(run, text, report),
        approve: (run, request) => askPeople({ engine, approvals, turns: this.turns, chat: this.chat }, run, request),
      },
    });
  }

  #sessionEnded(sessionId: string): void {
    this.turns.runOf(sessionId)?.stop({ type: 'lost' });
    this.memory.forget(sessionId);
    void this.runner.forget(sessionId).catch((error: unknown) => {
      this.#options.log.warn('the tools of an ended session could not be closed', { session: sessionId, error });
    });
  }

  /** Tells those whose turn will not be done in time. */
  async #tellUnfinished(reason: Exclude<ResumeReason, 'crash'>): Promise<void> {
    const runs = this.turns.running.filter(({ session }) => deliverable(session));
    const id = (turnId: string): string => `${turnId}:${this.engine.instance}:stopping`;
    await Promise.allSettled(
      runs.map(({ session, turn }) => this.chat.tell(session, stoppingText(reason), id(turn.id))),
    );
  }
}

function observerOf({ figures, tracer = null, log }: GatewayOptions, instance: string): Observer {
  const observers = [
    ...(figures === undefined ? [] : [measuring(figures)]),
    ...(tracer === null ? [] : [traces(tracer, instance)]),
  ];
  return observeWith(observers, log);
}

function pricesOf({ priceIn, priceOut }: ModelConfig): { input: number; output: number } | null {
  return priceIn === null || priceOut === null ? null : { input: priceIn, output: priceOut };
}
