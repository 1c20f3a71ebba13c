import { createHash } from 'node:crypto';
import { setting, type ValueOf } from '../../settings/declaration.ts';
import { oneOf, optional, secret, text, webAddress } from '../../settings/kinds.ts';
import { credential, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { TELEGRAM_ABILITIES } from './abilities.ts';

const API_ROOT = 'https://api.telegram.org';

const settings = platformSection(
  {
    token: credential('what BotFather gave', 'TELEGRAM_BOT_TOKEN'),
    mode: setting(oneOf('polling', 'webhook'), 'polling', '`polling`, or `webhook`, which needs `webhook_url`'),
    webhook_url: setting(optional(webAddress), null, 'where Telegram reaches this gateway'),
    webhook_secret: setting(secret(optional(text)), null, 'what Telegram has to prove itself with'),
  },
  ({ mode, webhookUrl }) =>
    mode === 'webhook' && webhookUrl === null
      ? { key: 'mode', fault: 'nothing without webhook_url, the address at which Telegram reaches this gateway' }
      : null,
);

type TelegramSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'telegram',
  label: 'Telegram',
  settings,
  abilities: TELEGRAM_ABILITIES,
  missing: ({ token }: TelegramSettings) => (token === null ? ['token'] : []),
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
  setup: {
    steps: [
      'Write to @BotFather on Telegram: /newbot, a name, a user name that ends in "bot".',
      'He answers with a token that looks like 123456:ABC-DEF.',
    ],
    asks: [{ key: 'token', question: 'The token of the bot', secret: { variable: 'TELEGRAM_BOT_TOKEN' } }],
    afterwards: ['Write to your bot. It answers with a code: moirai pairing approve CODE lets you in.'],
  },
});

function webhookOf({ mode, webhookUrl, webhookSecret, token }: TelegramSettings) {
  if (mode !== 'webhook' || webhookUrl === null) return null;
  // Without a secret of its own: one that only the holder of the token can know.
  const secret = webhookSecret ?? createHash('sha256').update(`webhook secret of ${token}`).digest('hex');
  return { url: webhookUrl, secret };
}
