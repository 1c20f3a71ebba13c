import type { Config } from '../../config/config.ts';
import { configSettings } from '../../config/settings.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import type { LeveledLogger } from '../../log/logger.ts';
import { secretsOf } from '../../settings/show-settings.ts';
import { assertMemory, readConfig } from '../configuration.ts';
import type { Settings } from '../settings.ts';
import type { RunningGateway } from './host.ts';

/**
 * Reads the configuration again and takes over what can change under way: keys of HTTP clients, the rules by which sessions
 * end, and the level of the log. A file that is wrong is logged, and changes nothing.
 */
export async function reload(
  running: Config,
  settings: Settings,
  host: RunningGateway,
  log: LeveledLogger,
): Promise<void> {
  try {
    const fresh = await readConfig(settings);
    log.setLevel(fresh.log.level);
    log.setSecrets([running, fresh].flatMap((config) => secretsOf(configSettings, config)));
    const applied = apply(host, fresh, log);
    log.info('the configuration was read again', { needs_restart: needsRestart(running, fresh) });
    await applied;
  } catch (error) {
    log.error('the configuration is wrong and was not taken over', { error: MoiraiError.wrap(error) });
  }
}

async function apply(host: RunningGateway, fresh: Config, log: LeveledLogger): Promise<void> {
  try {
    const changed = await host.useConfig(fresh);
    if (changed > 0) log.info('open sessions have another deadline under the new reset rules', { sessions: changed });
  } catch (thrown) {
    const error = MoiraiError.wrap(thrown);
    log.error('the new reset rules did not reach every open session yet; the next reload or start lets them', {
      error,
    });
  }
}

/** Whether a gateway would start with the configuration as it is now. */
export async function couldRestart(settings: Settings, log: LeveledLogger): Promise<boolean> {
  try {
    await assertMemory(await readConfig(settings));
    return true;
  } catch (error) {
    log.error('not restarting: the configuration is wrong', { error: MoiraiError.wrap(error) });
    return false;
  }
}

/** The sections in which something changed that only a start takes over. */
function needsRestart(running: Config, fresh: Config): string[] {
  const settled = ({ sessions, log: { level: _, ...log }, gateway, ...rest }: Config) => {
    return Object.entries({ ...rest, sessions: withoutRules(sessions), log, gateway: withoutKeys(gateway) });
  };
  const now = new Map(settled(fresh).map(([name, section]) => [name, JSON.stringify(section)]));
  return settled(running).flatMap(([name, section]) => (now.get(name) === JSON.stringify(section) ? [] : [name]));
}

function withoutKeys({ apiKey: _, keys: __, ...gateway }: Config['gateway']): object {
  return gateway;
}

function withoutRules(sessions: Config['sessions']): object {
  const rules = { reset: null, resetByType: null, resetByPlatform: null, resumeWindowMs: null, stuckAfter: null };
  return { ...sessions, ...(rules satisfies Record<keyof ResetRules, null>) };
}
