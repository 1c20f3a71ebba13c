import { createRunner } from '../../agent/create-runner.ts';
import { sandboxProblem } from '../../agent/tools/sandbox.ts';
import type { ApiBackend, Readiness } from '../../api/backend.ts';
import { Figures } from '../../api/figures.ts';
import { type RunningApi, startApi } from '../../api/server.ts';
import type { Config } from '../../config/config.ts';
import { apiBackend } from '../../gateway/api-backend.ts';
import { Gateway } from '../../gateway/gateway.ts';
import type { PlatformStatus } from '../../inbound/platform-manager.ts';
import type { Logger } from '../../log/logger.ts';
import type { ArrivedReplies } from '../../outbound/arrived-replies.ts';
import { configuredPlatforms, type IdlePlatform, notServed } from '../../platforms/registry.ts';
import { builtPage } from '../../space/page-files.ts';
import { openStore } from '../../store/open-store.ts';
import { startTracing } from '../../tracing/tracer.ts';
import { packageVersion } from '../package-version.ts';

export interface HostOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Asks the process to end, and to be started again. */
  readonly restart: () => Promise<boolean>;
  /** The lease was lost: another gateway must begin. */
  readonly lost: () => void;
  /** Replies that arrived, from gateways that ran in this process before. */
  readonly arrived: ArrivedReplies;
}

export type RunningGateway = Awaited<ReturnType<typeof startGateway>>;

/** Starts a gateway with its store and its HTTP server. */
export async function startGateway({ config, log, environment, restart, lost, arrived }: HostOptions) {
  const store = await openStore(config.store.url, config.home, config.sessions, {
    onProblem: (message, details) => log.warn(message, details),
  });
  let phase: Readiness['state'] = 'starting';
  for (const { name, why } of notServed(config)) log.warn('platform not served', { platform: name, why });
  try {
    const figures = new Figures();
    const sandbox = await checkSandbox(config, log);
    const tracer = await startTracing(config.tracing, packageVersion(), log);
    const gateway = await Gateway.start({
      ...{ config, store, log, restart, lost, environment, primary: true, platforms: [] },
      ...{ chat: configuredPlatforms(config), figures, tracer, arrived },
      version: packageVersion(),
      makeRunner: (ports) => createRunner(config, { ...ports, environment }, log),
    });
    const state = () => (gateway.conversations.draining && phase === 'ready' ? 'draining' : phase);
    const backend = apiBackend({
      gateway,
      model: gateway.runner.model ?? 'default',
      readiness: () => readiness(gateway, state(), notServed(config), sandbox),
      state,
      figures,
    });
    const api = await openDoor(config, backend, gateway, log);
    phase = 'ready';
    return {
      gateway,
      store,
      url: api.url,
      /** Takes over what a running gateway can: keys, and the rules by which sessions end. Says how many that changed. */
      useConfig: (fresh: Config): Promise<number> => {
        api.useKeys(fresh.gateway);
        return gateway.useRules(fresh.sessions);
      },
      /** Finishes what can be finished, leaves the rest for the next start, and closes everything. */
      stop: async (reason: 'restart' | 'shutdown'): Promise<void> => {
        phase = 'draining';
        try {
          await gateway.stop(reason);
        } finally {
          // Beside the rest: a collector that is away delays nothing.
          const traced = tracer?.close();
          await api.close();
          await store.close();
          await traced;
          phase = 'stopped';
        }
      },
    };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

async function openDoor(config: Config, backend: ApiBackend, gateway: Gateway, log: Logger): Promise<RunningApi> {
  const { host, port, apiKey, keys, trustedProxies, allowedOrigins } = config.gateway;
  try {
    return await startApi({
      ...{ host, port, apiKey, keys, trustedProxies, allowedOrigins, backend, log },
      engine: gateway.engine,
      version: packageVersion(),
      ...(config.platforms.web.enabled ? { page: builtPage() } : {}),
    });
  } catch (thrown) {
    await gateway.stop('shutdown');
    throw thrown;
  }
}

async function readiness(
  gateway: Gateway,
  state: Readiness['state'],
  idle: readonly IdlePlatform[],
  sandbox: Readiness['checks'],
): Promise<Readiness> {
  const problem = await gateway.storeProblem();
  const store = { ok: problem === null, detail: problem?.code ?? gateway.engine.store.location };
  const { running, waiting } = gateway.load;
  return {
    state: state === 'ready' && problem !== null ? 'refusing' : state,
    checks: {
      store,
      model: { ok: true, detail: gateway.runner.description },
      turns: { ok: true, detail: `${running} running, ${waiting} waiting` },
      ...sandbox,
      ...gateway.pluginChecks,
      ...Object.fromEntries(gateway.chat.status().map((status) => [status.name, platformCheck(status)])),
      ...Object.fromEntries(idle.map(({ name, why }) => [name, { ok: false, detail: why }])),
    },
  };
}

/** A sandbox that does not work is no reason to be away: conversations go on, and commands are refused. */
async function checkSandbox({ agent }: Config, log: Logger): Promise<Readiness['checks']> {
  if (agent.sandbox === 'off') return {};
  const problem = await sandboxProblem(agent);
  if (problem !== null) log.error('the sandbox does not work; no command is run', { problem });
  return { sandbox: { ok: problem === null, detail: problem ?? agent.sandbox } };
}

function platformCheck({ phase, problem, lastSuccessAt }: PlatformStatus): { ok: boolean; detail: string } {
  const last = lastSuccessAt === null ? 'never answered' : `last answer ${new Date(lastSuccessAt).toISOString()}`;
  return { ok: phase === 'connected', detail: [phase, problem, last].filter((part) => part !== null).join('; ') };
}
