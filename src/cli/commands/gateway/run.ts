import type { Command } from 'commander';
import type { Config } from '../../../config/config.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { createLogger, type Logger } from '../../../log/logger.ts';
import { secretsOf } from '../../../config/show-config.ts';
import { readConfig } from '../../configuration.ts';
import { becomeGateway, type GatewayHolder, type GatewayLock } from '../../gateway/holder.ts';
import { GatewayHost } from '../../gateway/host.ts';
import { packageVersion } from '../../package-version.ts';
import { print, printJson } from '../../print.ts';
import { makeHome, settingsOf } from '../../settings.ts';

const RESTART_WANTED = 75;
/** Beyond the drain timeout; whoever still hangs then is left behind. */
const STOP_GRACE_MS = 3000;

export function define(command: Command): void {
  command
    .description('Runs the gateway in the foreground: web chat, HTTP, and the platforms of the configuration.')
    .addHelpText('after', '\nSIGTERM and SIGINT let running turns finish; a second one interrupts them at once.\n')
    .action(async () => {
      const settings = settingsOf(command);
      makeHome(settings.home);
      const config = await readConfig(settings);
      const log = createLogger({ ...config.log, secrets: secretsOf(config) });
      const holder: GatewayHolder = {
        pid: process.pid,
        version: packageVersion(),
        startedAt: new Date().toISOString(),
        url: null,
        instance: null,
      };
      const lock = await becomeGateway(config.home, holder);
      try {
        process.exitCode = await serve(config, log, lock, holder, settings.json);
      } finally {
        lock.release();
      }
    });
}

type Ending = { readonly reason: 'restart' | 'shutdown'; readonly code: number };

async function serve(
  config: Config,
  log: Logger,
  lock: GatewayLock,
  holder: GatewayHolder,
  json: boolean,
): Promise<number> {
  let end: (ending: Ending) => void = () => undefined;
  const ending = new Promise<Ending>((resolve) => {
    end = resolve;
  });
  const host = await GatewayHost.start({
    ...{ config, log, environment: process.env },
    restart: () => end({ reason: 'restart', code: RESTART_WANTED }),
    lost: () => {
      log.error('the lease was lost; starting again is the only way on');
      end({ reason: 'restart', code: RESTART_WANTED });
    },
  });
  lock.note({ ...holder, url: host.url, instance: host.gateway.engine.instance });
  await announce(config, host, json);
  listenToSignals(host, end);
  const { reason, code } = await ending;
  await stopInTime(host, reason, config.gateway.drainTimeoutMs, log);
  return code;
}

function announce(config: Config, host: GatewayHost, json: boolean): Promise<void> {
  const facts = {
    url: host.url,
    home: config.home,
    store: host.store.location,
    model: host.gateway.runner.description,
    platforms: ['web', 'api'],
  };
  if (json) return printJson(facts);
  const lines = Object.entries(facts).map(([name, value]) => `${name.padEnd(10)}${[value].flat().join(', ')}`);
  return print(`${lines.join('\n')}\n`);
}

function listenToSignals(host: GatewayHost, end: (ending: Ending) => void): void {
  let asked = false;
  const stop = (reason: Ending['reason'], code: number): void => {
    if (asked) host.gateway.hurry();
    asked = true;
    end({ reason, code });
  };
  process.on('SIGTERM', () => stop('shutdown', 0));
  process.on('SIGINT', () => stop('shutdown', 0));
  process.on('SIGUSR1', () => stop('restart', RESTART_WANTED));
}

async function stopInTime(host: GatewayHost, reason: Ending['reason'], drainMs: number, log: Logger): Promise<void> {
  const late = setTimeout(() => {
    log.error('stopping took too long; the next start settles the rest');
    process.exit(1);
  }, drainMs + STOP_GRACE_MS);
  try {
    await host.stop(reason);
  } catch (thrown) {
    log.error('stopping failed; the next start settles the rest', { error: MoiraiError.wrap(thrown) });
  } finally {
    clearTimeout(late);
  }
}
