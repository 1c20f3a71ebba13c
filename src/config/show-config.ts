import * as settings from '../settings/show-settings.ts';
import type { Config } from './config.ts';
import { configSettings } from './settings.ts';

/** The configuration as one would write it in `config.yaml`, everything in it, every secret as `***`. */
export function showConfig(config: Config): unknown {
  return settings.showSettings(configSettings, config);
}

/** Every secret of the configuration, for a log that must not show them. */
export function secretsOf(config: Config): string[] {
  return settings.secretsOf(configSettings, config);
}
