import { setting, type ValueOf } from '../../settings/declaration.ts';
import { flag, oneOf } from '../../settings/kinds.ts';
import { credential, ownName, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { QQ_ABILITIES } from './abilities.ts';
import { hostsOf } from './hosts.ts';

const settings = platformSection({
  app_id: ownName('the AppID of the bot', 'QQ_APP_ID', 'QQBOT_APP_ID'),
  client_secret: credential('its AppSecret', 'QQ_CLIENT_SECRET', 'QQBOT_CLIENT_SECRET'),
  mode: setting(
    oneOf('websocket', 'webhook'),
    'websocket',
    '`websocket`, or `webhook`: QQ brings events to `/platforms/qq` of this gateway',
  ),
  sandbox: setting(flag, false, 'true talks to the sandbox, for a bot that is not published yet'),
});

type QqSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'qq',
  label: 'QQ',
  settings,
  abilities: QQ_ABILITIES,
  missing: ({ appId, clientSecret }: QqSettings) => [
    ...(appId === null ? ['app_id'] : []),
    ...(clientSecret === null ? ['client_secret'] : []),
  ],
  // Whatever its secret is: QQ lets one process at a time receive for an AppID.
  credential: ({ appId }: QqSettings) => appId ?? '',
  async make({ appId, clientSecret, mode, sandbox, apiRoot }: QqSettings, runtime) {
    const { Qq } = await import('./platform.ts');
    const hosts = hostsOf(apiRoot, sandbox);
    return new Qq({ appId: appId ?? '', clientSecret: clientSecret ?? '', mode, ...hosts, runtime });
  },
  setup: {
    steps: [
      'Log in at https://q.qq.com, create a bot, and open its development settings.',
      'There are its AppID and, once generated, its AppSecret. Add the address of this machine to the IP whitelist.',
    ],
    asks: [
      { key: 'app_id', question: 'The AppID of the bot' },
      {
        key: 'client_secret',
        question: 'The AppSecret of the bot',
        secret: { variable: 'QQ_CLIENT_SECRET' },
      },
    ],
    afterwards: ['Write to your bot. It answers with a code: moirai pairing approve CODE lets you in.'],
  },
});
