import { createHash } from 'node:crypto';
import type { Config, TelegramConfig } from '../config/config.ts';
import type { Platform, PlatformRuntime } from '../platforms/platform.ts';

/** A platform that is to be there, not loaded yet. */
export interface ConfiguredPlatform {
  readonly name: string;
  /** Names what only one process may use at a time, without telling it. */
  readonly credential: string;
  make(runtime: PlatformRuntime): Promise<Platform>;
}

const MAX_FILE_BYTES = 20 * 1024 * 1024;
const TELEGRAM = 'https://api.telegram.org';

/** Those that are enabled and have what they need. Nothing of a platform that is off is ever loaded. */
export function configuredPlatforms({ platforms }: Pick<Config, 'platforms'>): ConfiguredPlatform[] {
  const { telegram } = platforms;
  return telegram.enabled && telegram.token !== null ? [telegramOf(telegram, telegram.token)] : [];
}

/** Those that have tokens although there is nothing here that could use them. */
export function unsupportedPlatforms({ platforms: { discord, slack } }: Pick<Config, 'platforms'>): string[] {
  const asked = { discord: discord.enabled && discord.token !== null, slack: slack.enabled && slack.token !== null };
  return Object.entries(asked).flatMap(([name, wanted]) => (wanted ? [name] : []));
}

function telegramOf(config: TelegramConfig, token: string): ConfiguredPlatform {
  return {
    name: 'telegram',
    credential: credentialOf('telegram', token),
    async make(runtime) {
      const { createTelegram } = await import('../platforms/telegram/platform.ts');
      const { mode, webhookUrl, webhookSecret, apiRoot } = config;
      const webhook =
        mode === 'webhook' && webhookUrl !== null
          ? { url: webhookUrl, secret: webhookSecret ?? secretOf(token) }
          : null;
      return createTelegram({ token, apiRoot: apiRoot ?? TELEGRAM, webhook, maxFileBytes: MAX_FILE_BYTES, runtime });
    },
  };
}

function credentialOf(platform: string, token: string): string {
  return `${platform}:${createHash('sha256').update(token).digest('hex').slice(0, 32)}`;
}

/** What Telegram proves itself with when nobody said: known to nobody who does not know the token. */
function secretOf(token: string): string {
  return createHash('sha256').update(`webhook secret of ${token}`).digest('hex');
}
