import { closeSync, openSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { configSettings } from '../../config/settings.ts';
import { describeThisProcess } from '../../engine/host.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { createLogger, type Logger } from '../../log/logger.ts';
import { ArrivedReplies } from '../../outbound/arrived-replies.ts';
import { notServed } from '../../platforms/registry.ts';
import { isStoreTrouble } from '../../queue/retry-until-known.ts';
import { secretsOf } from '../../settings/show-settings.ts';
import type { HomeLock } from '../../store/home-lock.ts';
import { readConfig } from '../configuration.ts';
import { packageVersion } from '../package-version.ts';
import { print, printJson } from '../print.ts';
import { type ClosedEntry, closeHome } from '../private-home.ts';
import { makeHome, type Settings } from '../settings.ts';
import { becomeGateway, type GatewayHolder } from './holder.ts';
import { type RunningGateway, startGateway } from './host.ts';
import { launchGateway } from './launch.ts';
import { couldRestart, reload } from './reload.ts';
import { onPort, openPage, type RunOptions, replaceRunning } from './run-options.ts';

const FAILURE = 1;
/** Beyond the drain timeout; what still hangs then is left behind. */
const STOP_GRACE_MS = 3000;

/** Why a gateway ends, and what its process exits with then. `again`: it does not, and another one begins in it. */
const EXIT_CODES = { shutdown: 0, restart: 75, again: 0 } as const;
type Reason = keyof typeof EXIT_CODES;

/** Runs the gateway of a home until it is to end, and sets the code that the process exits with. */
export async function runGateway(
  settings: Settings,
  startedBy: GatewayHolder['startedBy'],
  options: RunOptions = {},
): Promise<undefined> {
  makeHome(settings.home);
  // Before the other one is stopped: with a configuration that is wrong there would be none.
  if (options.replace) await readConfig(settings).then(() => replaceRunning(settings));
  const open = closeHome(settings.home, process.getuid?.() ?? null);
  let lock: HomeLock<GatewayHolder> | null = null;
  let reason: Reason = 'again';
  const kept: KeptAcrossRuns = { arrived: new ArrivedReplies(), port: null, options };
  try {
    while (reason === 'again') {
      const config = await readConfig(settings);
      const holder: GatewayHolder = {
        ...describeThisProcess(),
        version: packageVersion(),
        startedAt: new Date().toISOString(),
        startedBy,
        drainTimeoutMs: config.gateway.drainTimeoutMs,
        url: null,
        instance: null,
      };
      lock ??= await becomeGateway(config.home, holder);
      if (open.length > 0) loggerOf(config).warn(HOME_CLOSED, { was: open.splice(0).map(describeEntry) });
      reason = await runOnce(settings, config, lock, holder, kept).catch(beginLater(config, kept));
    }
  } finally {
    lock?.release();
  }
  comeBack(reason, settings, startedBy);
  process.exitCode = EXIT_CODES[reason];
}

const HOME_CLOSED = 'the home was open to other users of this machine; it is closed now';

function describeEntry({ mode, path, problem }: ClosedEntry): string {
  return `${mode} ${path}${problem === null ? '' : `, which stays so: ${problem}`}`;
}

/** What a process that begins again goes on with. */
interface KeptAcrossRuns {
  readonly arrived: ArrivedReplies;
  /** Where it listens; null before it did. */
  port: number | null;
  readonly options: RunOptions;
}

const BEGIN_LATER_MS = 1000;

/** A gateway that ran before does not give up because its store is in trouble when it begins again. */
function beginLater(config: Config, kept: KeptAcrossRuns): (thrown: unknown) => Promise<Reason> {
  return async (thrown) => {
    const error = MoiraiError.wrap(thrown);
    if (kept.port === null || !isStoreTrouble(error)) throw error;
    loggerOf(config).error('the store is in trouble; the gateway begins again later', { error });
    await sleep(BEGIN_LATER_MS);
    return 'again';
  };
}

function loggerOf(config: Config): ReturnType<typeof createLogger> {
  return createLogger({ ...config.log, secrets: secretsOf(configSettings, config) });
}

async function runOnce(
  settings: Settings,
  config: Config,
  lock: HomeLock<GatewayHolder>,
  holder: GatewayHolder,
  kept: KeptAcrossRuns,
): Promise<Reason> {
  const log = loggerOf(config);
  const { promise: ended, resolve: end } = Promise.withResolvers<Reason>();
  const restart = async (how: Reason): Promise<boolean> => {
    const could = await couldRestart(settings, log);
    if (could) end(how);
    return could;
  };
  const host = await startGateway({
    ...{ config: onPort(config, kept.options, kept.port), log, arrived: kept.arrived, environment: process.env },
    // One that a person started in a terminal begins again there; others are started again after their exit.
    restart: () => restart(holder.startedBy === 'person' ? 'again' : 'restart'),
    lost: () => {
      log.error('the lease was lost; the gateway begins again under a new one, in this process');
      end('again');
    },
  });
  const isFirst = kept.port === null;
  kept.port = Number(new URL(host.url).port);
  lock.note({ ...holder, url: host.url, instance: host.gateway.engine.instance });
  await announce(config, host, settings.json);
  if (isFirst && kept.options.open) {
    openPage(host.url, (error) => log.warn('no browser could be opened', { url: host.url, error }));
  }
  const deaf = new AbortController();
  const readAgain = (): Promise<void> => reload(config, settings, host, log);
  listenToSignals(host, end, () => restart('restart'), readAgain, deaf.signal);
  // Now, not at the exit: a gateway that is killed would leave no compile cache to the next one.
  flushCompileCache();
  const reason = await ended;
  await stopInTime(host, reason, holder.drainTimeoutMs, log, () => comeBack(reason, settings, holder.startedBy));
  deaf.abort();
  return reason;
}

/** A gateway in the background has no supervisor: it starts its successor after /restart. */
function comeBack(reason: Reason, settings: Settings, startedBy: GatewayHolder['startedBy']): void {
  if (reason === 'restart' && startedBy === 'start') launchGateway(settings);
}

async function announce(config: Config, host: RunningGateway, json: boolean): Promise<void> {
  const idle = notServed(config);
  const memory = await host.gateway.memoryProblem();
  const facts = {
    url: host.url,
    home: config.home,
    store: host.store.location,
    model: host.gateway.runner.description,
    platforms: [...(config.platforms.web.enabled ? ['web'] : []), 'api', ...host.gateway.chat.names],
    ...(memory === null ? {} : { memory }),
  };
  if (json) return printJson(idle.length === 0 ? facts : { ...facts, not_served: idle.map(({ name }) => name) });
  const rest = Object.fromEntries(idle.map(({ name, why }) => [name, why]));
  const phases = new Map(
    // A gateway that has just begun has not loaded them yet; it is about to.
    host.gateway.chat.status().map(({ name, phase }) => [name, phase === 'stopped' ? 'starting' : phase]),
  );
  const platforms = facts.platforms.map((name) => (phases.has(name) ? `${name} (${phases.get(name)})` : name));
  const shown = Object.entries({ ...facts, platforms, ...rest });
  const width = Math.max(...shown.map(([name]) => name.length)) + 1;
  const lines = shown.map(([name, value]) => `${name.padEnd(width)}${[value].flat().join(', ')}`);
  return print(`${lines.join('\n')}\n`);
}

function listenToSignals(
  host: RunningGateway,
  end: (reason: Reason) => void,
  restart: () => Promise<unknown>,
  readAgain: () => Promise<void>,
  deaf: AbortSignal,
): void {
  let asked = false;
  const stop = (): void => {
    if (asked) host.gateway.hurry();
    asked = true;
    end('shutdown');
  };
  const hadTerminal = hasTerminal();
  const listeners = {
    SIGTERM: stop,
    SIGINT: stop,
    SIGUSR1: () => {
      asked = true;
      void restart();
    },
    SIGHUP: () => {
      // The same signal says that the terminal was closed: a gateway in the foreground ends with its terminal.
      if (hadTerminal && !hasTerminal()) stop();
      else void readAgain();
    },
  } as const;
  for (const [signal, listener] of Object.entries(listeners)) {
    process.on(signal, listener);
    deaf.addEventListener('abort', () => process.off(signal, listener));
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false; // There is none, which is the answer.
  }
}

async function stopInTime(
  host: RunningGateway,
  reason: Reason,
  drainMs: number,
  log: Logger,
  comeBack: () => void,
): Promise<void> {
  const late = setTimeout(() => {
    log.error('stopping took too long; the next start settles the rest');
    comeBack();
    process.exit(EXIT_CODES[reason] || FAILURE);
  }, drainMs + STOP_GRACE_MS);
  try {
    await host.stop(reason === 'shutdown' ? 'shutdown' : 'restart');
  } catch (thrown) {
    log.error('stopping failed; the next start settles the rest', { error: MoiraiError.wrap(thrown) });
  } finally {
    clearTimeout(late);
  }
}
