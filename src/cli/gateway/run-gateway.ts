import { closeSync, openSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import type { Config } from '../../config/config.ts';
import { configSettings } from '../../config/settings.ts';
import { describeThisProcess } from '../../engine/host.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { createLogger, type Logger } from '../../log/logger.ts';
import { NOT_SERVED_TEXT, notServed } from '../../platforms/registry.ts';
import { secretsOf } from '../../settings/show-settings.ts';
import { readConfig } from '../configuration.ts';
import { packageVersion } from '../package-version.ts';
import { print, printJson } from '../print.ts';
import { makeHome, type Settings } from '../settings.ts';
import { becomeGateway, type GatewayHolder } from './holder.ts';
import { type RunningGateway, startGateway } from './host.ts';
import { launchGateway } from './launch.ts';
import { couldRestart, reload } from './reload.ts';

const FAILURE = 1;
/** Beyond the drain timeout; what still hangs then is left behind. */
const STOP_GRACE_MS = 3000;

/** Why a gateway ends, and what its process exits with then. */
const EXIT_CODES = { shutdown: 0, restart: 75 } as const;
type Reason = keyof typeof EXIT_CODES;

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
  const { promise: ended, resolve: end } = Promise.withResolvers<Reason>();
  const restart = async (): Promise<void> => {
    if (await couldRestart(settings, log)) end('restart');
  };
  // A gateway in the background has no supervisor: it starts its successor, also after /restart or a lost lease.
  const comeBack = (reason: Reason): void => {
    if (reason === 'restart' && startedBy === 'start') launchGateway(settings);
  };
  let reason: Reason;
  try {
    const host = await startGateway({
      ...{ config, log, environment: process.env },
      restart: () => void restart(),
      lost: () => {
        log.error('the lease was lost; starting again is the only way on');
        end('restart');
      },
    });
    lock.note({ ...holder, url: host.url, instance: host.gateway.engine.instance });
    await announce(config, host, settings.json);
    listenToSignals(host, end, restart, () => reload(config, settings, host.gateway, log));
    // Now, not at the exit: a gateway that is killed would leave no compile cache to the next one.
    flushCompileCache();
    reason = await ended;
    await stopInTime(host, reason, holder.drainTimeoutMs, log, comeBack);
  } finally {
    lock.release();
  }
  comeBack(reason);
  process.exitCode = EXIT_CODES[reason];
}

function announce(config: Config, host: RunningGateway, json: boolean): Promise<void> {
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
  host: RunningGateway,
  end: (reason: Reason) => void,
  restart: () => Promise<void>,
  readAgain: () => Promise<void>,
): void {
  let asked = false;
  const stop = (): void => {
    if (asked) host.gateway.hurry();
    asked = true;
    end('shutdown');
  };
  const hadTerminal = hasTerminal();
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('SIGUSR1', () => {
    asked = true;
    void restart();
  });
  process.on('SIGHUP', () => {
    // The same signal says that the terminal was closed: a gateway in the foreground ends with its terminal.
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
  host: RunningGateway,
  reason: Reason,
  drainMs: number,
  log: Logger,
  comeBack: (reason: Reason) => void,
): Promise<void> {
  const late = setTimeout(() => {
    log.error('stopping took too long; the next start settles the rest');
    comeBack(reason);
    process.exit(EXIT_CODES[reason] || FAILURE);
  }, drainMs + STOP_GRACE_MS);
  try {
    await host.stop(reason);
  } catch (thrown) {
    log.error('stopping failed; the next start settles the rest', { error: MoiraiError.wrap(thrown) });
  } finally {
    clearTimeout(late);
  }
}
