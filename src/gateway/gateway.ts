import { randomBytes } from 'node:crypto';
import type { AgentRunner, Approval, ApprovalRequest } from '../agent/runner.ts';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { Readiness } from '../api/backend.ts';
import type { Figures } from '../api/figures.ts';
import type { Config, ModelConfig } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import type { Ids } from '../engine/ids.ts';
import { isLeaseLost } from '../engine/instance.ts';
import { Upkeep } from '../engine/upkeep.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { ExtensionHost } from '../extensions/host/extension-host.ts';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import type { Logger } from '../log/logger.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { Sender } from '../platforms/platform.ts';
import type { ConfiguredPlatform } from '../platforms/registry.ts';
import { processTimers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { Approvals } from './approvals.ts';
import { Banner } from './banner.ts';
import { runBoot } from './boot.ts';
import { ChatPlatforms } from './chat-platforms.ts';
import { Children } from './children.ts';
import { COMMANDS } from './commands/catalogue.ts';
import { Conversations } from './conversations.ts';
import { GatewayCron } from './cron.ts';
import { EndedSessions } from './ended-sessions.ts';
import { createFoundation, type Foundation } from './foundation.ts';
import { Listeners } from './listeners.ts';
import { measuring } from './measuring.ts';
import { GatewayMemory } from './memory.ts';
import type { EndedHandlers } from './notices.ts';
import { type Observer, observeWith } from './observer.ts';
import { Outbox } from './outbox.ts';
import type { ReplyShape } from './platform-sender.ts';
import type { PluginBridge } from './plugin-bridge.ts';
import { deliverable } from './reply-target.ts';
import { stoppingText } from './texts.ts';
import { toolPorts } from './tool-ports.ts';
import { traces } from './traces.ts';
import { Transcripts } from './transcripts.ts';
import type { TurnRun } from './turn-run.ts';
import { Turns } from './turns.ts';

export interface GatewayOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Logger;
  readonly version: string;
  /** Ways out beside the chat platforms. */
  readonly platforms: readonly Sender[];
  /** The chat platforms it is to be on; none unless said. */
  readonly chat?: readonly ConfiguredPlatform[];
  /** What hooks may see a harmless part of. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly makeRunner: (ports: ToolPorts) => AgentRunner;
  /** Asks the process to restart; null where that is nobody's business. */
  readonly restart: (() => void) | null;
  /** The lease was lost: this process is over and must begin again. */
  readonly lost: () => void;
  /**
   * Also ends what expires, finds turns nobody runs, and announces its comings and goings. A terminal beside a gateway
   * leaves all that to it.
   */
  readonly primary: boolean;
  /** What plugins remember with; `memory.provider` says whether one of them does. */
  readonly memoryProviders?: readonly MemoryProvider[];
  /** Hears what is said to a conversation that nothing is sent to, beside its replies. */
  readonly onNote?: (session: Session, text: string) => void;
  /** Where what is measured goes; nowhere unless given. */
  readonly figures?: Figures;
  /** Where traces go; null and nothing for nowhere. */
  readonly tracer?: Tracer | null;
}

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
  readonly memory: GatewayMemory;
  readonly chat: ChatPlatforms;
  readonly cron: GatewayCron;
  readonly #options: GatewayOptions;
  readonly #upkeep: Upkeep;
  readonly #outbox: Outbox;
  readonly #ended: EndedSessions;
  #listeners: Listeners | null = null;
  readonly #children: Children;
  readonly #plugins: PluginBridge;
  readonly #extensions: ExtensionHost;
  readonly #ids: Ids;
  readonly #observer: Observer;
  #rules: ResetRules;
  #hurry: () => void = () => undefined;

  private constructor(options: GatewayOptions, foundation: Foundation) {
    const { config, log, primary } = options;
    const { engine, ids, plugins, providers } = foundation;
    this.#options = options;
    this.#ids = ids;
    this.#plugins = plugins;
    this.#extensions = foundation.extensions;
    this.#rules = config.sessions;
    this.#observer = observerOf(options, engine.instance);
    this.engine = engine;
    this.transcripts = new Transcripts(engine);
    this.dispatcher = foundation.dispatcher;
    this.memory = new GatewayMemory({
      ...{ config, engine, log, primary, providers, dispatcher: this.dispatcher, transcripts: this.transcripts },
      runner: () => this.runner,
    });
    this.cron = new GatewayCron({
      ...{ config, engine, log, primary },
      turns: () => this.turns,
      chat: () => this.chat,
    });
    this.approvals = new Approvals(processTimers, config.agent.approvalTimeoutMs);
    const { more = () => [], ...memoryPorts } = this.memory.ports;
    this.runner = options.makeRunner({
      ...toolPorts({
        ...{ engine, rules: config.sessions, children: () => this.#children },
        platform: (name) => this.chat.find(name),
      }),
      ...this.cron.ports,
      ...memoryPorts,
      more: () => [...plugins.tools, ...more()],
    });
    this.chat = new ChatPlatforms({
      ...{ config, engine, timers: processTimers, log, senders: options.platforms, approvals: this.approvals },
      configured: options.chat ?? [],
      conversations: () => this.conversations,
      runner: () => this.runner,
      brought: () => plugins.platforms,
      commands: () => [...COMMANDS, ...plugins.commands],
      newDeliveryId: () => ids.delivery(),
      wakeOutbox: () => this.#outbox.refresh(),
    });
    this.turns = this.#makeTurns();
    this.#children = new Children({
      ...{ engine, turns: this.turns, log },
      tell: (to, text, id) => this.tell(to, text, id),
      notice: (to, text, id) => this.chat.notice(to, text, id),
    });
    const { runner, turns, approvals, transcripts, memory } = this;
    const commandDeps = {
      ...{ engine, turns, runner, approvals, transcripts, memory },
      children: this.#children,
      jobs: this.cron.jobs,
      ...{ restart: options.restart, prices: pricesOf(config.model), more: () => plugins.commands },
    };
    this.conversations = new Conversations(commandDeps, (message) => plugins.dispatch(message));
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
    return this.#plugins.checks(this.#options.config.memory.provider);
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
    await Promise.all([this.memory.stop(), this.dispatcher.stop()]);
    await Promise.all([this.#listeners?.stop(), this.#plugins.stop()]);
    await this.#extensions.stop();
    this.#ended.stop();
    await this.runner.close();
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
    await Promise.all([this.memory.stop(), this.dispatcher.stop()]);
    await Promise.all([this.#listeners?.stop(), this.#plugins.stop()]);
    await this.#extensions.stop();
    this.#ended.stop();
    await this.runner.close();
  }

  /** Says something in a session's conversation that is no reply: in the outbox where there is one, else the transcript. */
  async tell(session: Session, text: string, id: string, shape: ReplyShape = {}): Promise<void> {
    const { engine } = this;
    if (deliverable(session)) {
      const deliveries = this.chat.notice(session, text, id, shape);
      await engine.store.write('addDeliveries', {
        context: engine.commandContext(),
        sessionId: session.id,
        deliveries,
      });
    } else {
      await engine.appendBeside(session.id, [{ role: 'assistant', text, turnId: null }]);
      this.#options.onNote?.(session, text);
    }
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
    const { engine, runner, transcripts, memory } = this;
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
        ...{ runner, memory, plugins: this.#plugins },
        timeoutMs: config.agent.turnTimeoutMs,
        transcript: (session) => transcripts.of(session),
        deliveries: (run, text, report) => this.chat.repliesOf(run, text, report),
        approve: (run, request) => this.#ask(run, request),
      },
    });
  }

  /** Asks the people of the conversation that a turn works for, wherever they are. */
  async #ask(run: TurnRun, request: ApprovalRequest): Promise<Approval> {
    const session = await this.#askedSession(run);
    if (session === null) return { allowed: false, reason: 'nobody is there to be asked' };
    const id = randomBytes(8).toString('hex');
    const answer = this.approvals.ask({ id, key: session.key, request, askedOf: session.userId }, run.signal);
    const question = { type: 'question', id, ...request } as const;
    // Work that was delegated asks in the turn that waits for it, too.
    const channels = new Set([run.channel, this.turns.runOf(session.id)?.channel ?? run.channel]);
    for (const channel of channels) channel.publish({ ...question, state: 'asked' });
    void answer.then(({ allowed }) => {
      for (const channel of channels) channel.publish({ ...question, state: allowed ? 'allowed' : 'denied' });
    });
    if (deliverable(session)) {
      const { text, shape } = this.chat.question(session, id, request);
      await this.tell(session, text, this.#ids.delivery(), shape);
    }
    return answer;
  }

  /** The session whose people can answer: that of the conversation which work was delegated from; null for nobody. */
  async #askedSession(run: TurnRun): Promise<Session | null> {
    let session: Session | null = run.session;
    while (session !== null && session.kind === 'child' && session.parentId !== null) {
      session = await this.engine.store.read('getSession', { sessionId: session.parentId });
    }
    if (session === null || session.kind === 'cron' || session.kind === 'batch') return null;
    // A request that is answered as a whole shows its sender no question.
    const alone = session.kind === 'api' && session.attached;
    return alone && !run.channel.watched ? null : session;
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
    await Promise.allSettled(runs.map(({ session, turn }) => this.tell(session, stoppingText(reason), id(turn.id))));
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
