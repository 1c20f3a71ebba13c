import type { AgentRunner } from '../agent/runner.ts';
import { measuring } from '../api/measuring.ts';
import { COMMANDS, slashCommands } from '../commands/catalogue.ts';
import type { ModelConfig } from '../config/config.ts';
import { JobRuns } from '../cron/job-runs.ts';
import { JobService } from '../cron/job-service.ts';
import { schedulePort } from '../cron/schedule-port.ts';
import { applyResetRules } from '../engine/reset-rules.ts';
import { Upkeep } from '../engine/upkeep.ts';
import { SessionMemory } from '../memory/session-memory.ts';
import { ArrivedReplies } from '../outbound/arrived-replies.ts';
import { Outbox } from '../outbound/outbox.ts';
import { Approvals } from '../people/approvals.ts';
import { processTimers } from '../queue/timers.ts';
import { traces } from '../tracing/turn-traces.ts';
import { Children } from '../turns/children.ts';
import { Conversations } from '../turns/conversations.ts';
import { EndedSessions } from '../turns/ended-sessions.ts';
import { type Observer, observeWith } from '../turns/observer.ts';
import { giveUpAllStale, type Notice } from '../turns/resumed-turn.ts';
import { Transcripts } from '../turns/transcripts.ts';
import { Turns } from '../turns/turns.ts';
import { askPeople } from './ask-people.ts';
import { ChatPlatforms } from './chat-platforms.ts';
import type { Foundation, GatewayOptions } from './foundation.ts';
import { dispatchGate, turnPlugins } from './gateway-plugins.ts';
import { toolPorts } from './tool-ports.ts';

export type GatewayParts = ReturnType<typeof composeGateway>;

/** Makes the parts of a gateway and hands them to each other; begins nothing. */
export function composeGateway(
  options: GatewayOptions,
  { engine, health, ids, dispatcher, plugins, providers }: Foundation,
) {
  const { config, log, primary } = options;
  const timers = processTimers;
  const observer = observerOf(options, engine.instance);
  const transcripts = new Transcripts(engine);
  const memory = new SessionMemory({
    ...{ config, engine, log, primary, providers, dispatcher, transcripts },
    runner: () => runner,
  });
  const { timezone } = config.sessions.reset;
  const jobs = new JobService({ store: engine.store, timezone, random: Math.random });
  const approvals = new Approvals({
    ...{ engine, timers, timeoutMs: config.agent.approvalTimeoutMs, newId: () => ids.approval() },
    rule: config.access.approvals,
    failed: (error) => log.warn('looking for answers of people failed; trying again', { error }),
  });
  const { more = () => [], ...memoryPorts } = memory.ports;
  const runner: AgentRunner = options.makeRunner({
    ...toolPorts({
      ...{ engine, agent: config.agent, rules: config.sessions, children: () => children },
      platform: (name) => chat.find(name),
    }),
    schedule: schedulePort(engine, jobs),
    ...memoryPorts,
    more: () => [...plugins.tools(), ...more()],
  });
  const chat: ChatPlatforms = new ChatPlatforms({
    ...{ config, engine, timers, log, senders: options.platforms, approvals },
    configured: options.chat ?? [],
    conversations: () => conversations,
    runner: () => runner,
    brought: () => plugins.platforms(),
    commands: () => [...COMMANDS, ...plugins.commands()],
    newDeliveryId: () => ids.delivery(),
    onNote: options.onNote ?? (() => undefined),
    wakeOutbox: () => outbox.refresh(),
  });
  const notice: Notice = (session, text, id) => chat.notice(session, text, id);
  const turns: Turns = new Turns({
    ...{ engine, timers, log },
    maxConcurrent: config.gateway.maxConcurrentTurns,
    busyMode: () => config.agent.busyMode,
    admits: (session, turn) => chat.admits(session, turn),
    received: observer.received,
    parked: (session, turn) => chat.tellParked(session, turn),
    notice,
    started: (run) => {
      observer.started(run);
      chat.started(run);
    },
    runDeps: {
      ...{ runner, memory, plugins: turnPlugins(plugins) },
      timeoutMs: config.agent.turnTimeoutMs,
      transcript: (session) => transcripts.of(session),
      textWithFiles: (...message) => chat.files.textWithFiles(...message),
      deliveries: (run, text, report) => chat.repliesOf(run, text, report),
      approve: (run, request) => askPeople({ engine, approvals, turns, chat, log }, run, request),
    },
  });
  const cron = new JobRuns({ config, engine, log, primary, jobs, turns, chat });
  const children = new Children({
    ...{ engine, turns, log },
    tell: (to, text, id) => chat.tell(to, text, id),
    notice,
  });
  const commandDeps = {
    ...{ engine, turns, runner, approvals, transcripts, memory, jobs, children },
    ...{ restart: options.restart, prices: pricesOf(config.model), more: () => plugins.commands() },
  };
  const commands = slashCommands(commandDeps);
  const conversations = new Conversations({ engine, health, turns, commands, gate: dispatchGate(plugins) });
  const { arrived = new ArrivedReplies() } = options;
  const outbox = new Outbox({ engine, log, arrived, random: Math.random, senders: () => chat.senders, observer });
  const ended = new EndedSessions(engine.store, timers, log, (sessionId, type) => {
    if (type === 'session:release') return turns.wake(sessionId);
    turns.runOf(sessionId)?.stop({ type: 'lost' });
    if (type === 'session:suspend') return;
    memory.forget(sessionId);
    void runner.forget(sessionId).catch((error: unknown) => {
      log.warn('the tools of an ended session could not be closed', { session: sessionId, error });
    });
  });
  const settleBeforeExpiry = async (): Promise<void> => {
    await giveUpAllStale(engine, notice);
    await applyResetRules(engine, config.sessions);
  };
  const upkeep = new Upkeep(engine, {
    heartbeatMs: config.sessions.heartbeatMs,
    timers,
    wallClock: Date.now,
    expire: primary,
    ...(primary ? { beforeExpiry: () => settleBeforeExpiry() } : {}),
    ...(primary ? { retention: config.sessions.retentionMs } : {}),
    failed: (error) => log.warn('upkeep failed; trying again', { error }),
    // While nothing can be written, another gateway in this process could not begin.
    lost: () => void health.writable().then((isWritable) => isWritable && options.lost()),
  });
  return { runner, turns, conversations, approvals, transcripts, memory, chat, cron, children, outbox, ended, upkeep };
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
