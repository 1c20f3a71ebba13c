import { closeSync, openSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import type { Config } from '../../config/config.ts';
import { configSettings } from '../../config/settings.ts';
import { describeThisProcess } from '../../engine/host.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { createLogger, type LeveledLogger, type Logger } from '../../log/logger.ts';
import { NOT_SERVED_TEXT, notServed } from '../../platforms/registry.ts';
import { secretsOf } from '../../settings/show-settings.ts';
import { readConfig } from '../configuration.ts';
import { packageVersion } from '../package-version.ts';
import { print, printJson } from '../print.ts';
import { makeHome, type Settings } from '../settings.ts';
import { becomeGateway, type GatewayHolder, type GatewayLock } from './holder.ts';
import { GatewayHost } from './host.ts';
import { launchGateway } from './launch.ts';
import { couldRestart, reload } from './reload.ts';

const FAILURE = 1;
const RESTART_WANTED = 75;
/** Beyond the drain timeout; whoever still hangs then is left behind. */
const STOP_GRACE_MS = 3000;

/** Runs the gateway of a home until it is to end, and sets the code that the process exits with. */
export async function runGateway(settings: Settings, startedBy: GatewayHolder['startedBy']): Promise<undefined> {
  makeHome(settings.home);
  const config = await readConfig(settings);
  const log = createLogger({ ...config.log, secrets: secretsOf(configSettings, config) });
  const holder: GatewayHolder = {
    ...describeThisProcess(),
    version: packageVersion(),
    startedAt: new Date().toISOString(),
    startedBy,
    drainTimeoutMs: config.gateway.drainTimeoutMs,
    url: null,
    instance: null,
  };
  const lock = await becomeGateway(config.home, holder);
  let ending: Ending;
  try {
    const { host, ending: ends } = await start(config, settings, log, lock, holder);
    ending = await ends;
    await stopInTime(host, ending, config.gateway.drainTimeoutMs, log, () => comeBack(ending, settings, holder));
  } finally {
    lock.release();
  }
  comeBack(ending, settings, holder);
  process.exitCode = ending.code;
}

/** In the background nobody else would: also when a user said /restart, or the lease was lost. */
function comeBack({ code }: Ending, settings: Settings, { startedBy }: GatewayHolder): void {
  if (code === RESTART_WANTED && startedBy === 'start') launchGateway(settings);
}

type Ending = { readonly reason: 'restart' | 'shutdown'; readonly code: number };
const SHUTDOWN: Ending = { reason: 'shutdown', code: 0 };
const RESTART: Ending = { reason: 'restart', code: RESTART_WANTED };

/** Opens the gateway; `ending` resolves when it is to be closed. */
async function start(
  config: Config,
  settings: Settings,
  log: LeveledLogger,
  lock: GatewayLock,
  holder: GatewayHolder,
): Promise<{ host: GatewayHost; ending: Promise<Ending> }> {
  const { promise: ending, resolve: end } = Promise.withResolvers<Ending>();
  const restart = async (): Promise<void> => {
    if (await couldRestart(settings, log)) end(RESTART);
  };
  const host = await GatewayHost.start({
    ...{ config, log, environment: process.env },
    restart: () => void restart(),
    lost: () => {
      log.error('the lease was lost; starting again is the only way on');
      end(RESTART);
    },
  });
  lock.note({ ...holder, url: host.url, instance: host.gateway.engine.instance });
  await announce(config, host, settings.json);
  listenToSignals(host, end, restart, () => reload(config, settings, host.gateway, log));
  // Now, not at the exit: a gateway that is killed has compiled for nobody otherwise.
  flushCompileCache();
  return { host, ending };
}

function announce(config: Config, host: GatewayHost, json: boolean): Promise<void> {
  const idle = notServed(config);
  const facts = {
    url: host.url,
    home: config.home,
    store: host.store.location,
    model: host.gateway.runner.description,
    platforms: [...(config.platforms.web.enabled ? ['web'] : []), 'api', ...host.gateway.chat.names],
  };
  if (json) return printJson(idle.length === 0 ? facts : { ...facts, not_served: idle });
  const rest = Object.fromEntries(idle.map((name) => [name, NOT_SERVED_TEXT]));
  const lines = Object.entries({ ...facts, ...rest }).map(
    ([name, value]) => `${name.padEnd(10)}${[value].flat().join(', ')}`,
  );
  return print(`${lines.join('\n')}\n`);
}

function listenToSignals(
  host: GatewayHost,
  end: (ending: Ending) => void,
  restart: () => Promise<void>,
  readAgain: () => Promise<void>,
): void {
  let asked = false;
  const stop = (): void => {
    if (asked) host.gateway.hurry();
    asked = true;
    end(SHUTDOWN);
  };
  const hadTerminal = hasTerminal();
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('SIGUSR1', () => {
    asked = true;
    void restart();
  });
  process.on('SIGHUP', () => {
    // The same signal says that the terminal was closed: then nobody would see this gateway run on.
    if (hadTerminal && !hasTerminal()) stop();
    else void readAgain();
  });
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
  host: GatewayHost,
  { reason, code }: Ending,
  drainMs: number,
  log: Logger,
  leftBehind: () => void,
): Promise<void> {
  const late = setTimeout(() => {
    log.error('stopping took too long; the next start settles the rest');
    leftBehind();
    process.exit(code === 0 ? FAILURE : code);
  }, drainMs + STOP_GRACE_MS);
  try {
    await host.stop(reason);
  } catch (thrown) {
    log.error('stopping failed; the next start settles the rest', { error: MoiraiError.wrap(thrown) });
  } finally {
    clearTimeout(late);
  }
}
