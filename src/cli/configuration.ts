import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { configPaths } from '../config/config-paths.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../lifecycle/reset-policy.ts';
import type { Settings } from './settings.ts';

/** What a command has to know to take part in a store. */
export interface StoreSettings {
  readonly url: string;
  readonly rules: ResetRules;
  readonly heartbeatMs: number;
  readonly leaseTtlMs: number;
}

/** The home's configuration, with what the command line says in its place. Throws `config_invalid`. */
export async function readConfig(settings: Settings): Promise<Config> {
  const { loadConfig } = await import('../config/load-config.ts');
  const config = loadConfig({ home: settings.home, env: process.env });
  return settings.storeUrl === null ? config : { ...config, store: { url: settings.storeUrl } };
}

/** The key by which this machine's own commands ask a gateway: one that may do everything. */
export function operatorKey({ apiKey, keys }: Config['gateway']): string | null {
  return apiKey ?? keys.find(({ scopes }) => scopes.includes('admin'))?.key ?? null;
}

/**
 * Throws `config_invalid` when the memory of a configuration is one that cannot be: its file says nothing of that, and a
 * gateway would not start.
 */
export async function assertMemory({ home, memory }: Config): Promise<void> {
  const { checkProvider } = await import('../memory/create-provider.ts');
  try {
    // What plugins bring is known only once they run.
    checkProvider(memory, { plugins: existsSync(join(home, 'plugins')) });
  } catch (cause) {
    const { configInvalid } = await import('../config/problem.ts');
    const file = configPaths(home).config;
    const { message } = MoiraiError.wrap(cause);
    throw configInvalid([{ file, line: null, column: null, path: 'memory', message, nearest: null }], cause);
  }
}

/** The part of the configuration that opens the store. Throws `config_invalid`. */
export async function storeSettingsOf(settings: Settings): Promise<StoreSettings> {
  if (!isConfigured(settings.home)) return defaultStoreSettings(settings.storeUrl);
  const { store, sessions } = await readConfig(settings);
  const { heartbeatMs, leaseTtlMs } = sessions;
  return { url: store.url, rules: sessions, heartbeatMs, leaseTtlMs };
}

function isConfigured(home: string): boolean {
  return Object.values(configPaths(home)).some((file) => existsSync(file));
}

/**
 * What `loadConfig` would answer about a home without any file, the zone apart, which has no part in these rules. To ask it
 * takes as long as a short command does.
 */
function defaultStoreSettings(storeUrl: string | null): StoreSettings {
  return {
    url: storeUrl ?? 'sqlite:state.db',
    rules: DEFAULT_RESET_RULES,
    heartbeatMs: 15_000,
    leaseTtlMs: 90_000,
  };
}
