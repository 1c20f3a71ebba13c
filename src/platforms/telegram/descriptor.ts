import { createHash } from 'node:crypto';
import { section, setting, type ValueOf } from '../../settings/declaration.ts';
import { oneOf, optional, secret, text, webAddress } from '../../settings/kinds.ts';
import { apiRoot, enabled, people, token } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { TELEGRAM_ABILITIES } from './abilities.ts';

const API_ROOT = 'https://api.telegram.org';

const settings = section(
  {
    enabled,
    token: token('TELEGRAM_BOT_TOKEN'),
    api_root: apiRoot,
    mode: setting(oneOf('polling', 'webhook'), 'polling', '`polling`, or `webhook`, which needs `webhook_url`'),
    webhook_url: setting(optional(webAddress), null, 'where Telegram reaches this gateway'),
    webhook_secret: setting(secret(optional(text)), null, 'what Telegram has to prove itself with'),
    ...people,
  },
  {
    rule: ({ mode, webhookUrl }) =>
      mode === 'webhook' && webhookUrl === null
        ? { key: 'mode', fault: 'nothing without webhook_url, the address at which Telegram reaches this gateway' }
        : null,
  },
);

type TelegramSettings = ValueOf<typeof settings>;

export const telegram = describePlatform({
  name: 'telegram',
  settings,
  abilities: TELEGRAM_ABILITIES,
  isConfigured: (given: TelegramSettings) => given.enabled && given.token !== null,
  credential: (given: TelegramSettings) => given.token ?? '',
  async make(given: TelegramSettings, runtime) {
    const { Telegram } = await import('./platform.ts');
    return new Telegram({
      token: given.token ?? '',
      apiRoot: given.apiRoot ?? API_ROOT,
      webhook: webhookOf(given),
      runtime,
    });
  },
});

function webhookOf({ mode, webhookUrl, webhookSecret, token }: TelegramSettings) {
  if (mode !== 'webhook' || webhookUrl === null) return null;
  // Without a secret of its own: one that only the holder of the token can know.
  const secret = webhookSecret ?? createHash('sha256').update(`webhook secret of ${token}`).digest('hex');
  return { url: webhookUrl, secret };
}
