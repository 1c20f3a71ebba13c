import { setting, type ValueOf } from '../../settings/declaration.ts';
import { oneOf } from '../../settings/kinds.ts';
import { credential, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { SLACK_ABILITIES } from './abilities.ts';

const settings = platformSection({
  token: credential('the bot token, `xoxb-...`', 'SLACK_BOT_TOKEN'),
  app_token: credential('the app-level token, `xapp-...`; `socket` needs it', 'SLACK_APP_TOKEN'),
  signing_secret: credential('what Slack signs its requests with; `http` needs it', 'SLACK_SIGNING_SECRET'),
  mode: setting(
    oneOf('socket', 'http'),
    'socket',
    '`socket`: the gateway connects to Slack; `http`: Slack brings everything to `/platforms/slack`',
  ),
});

type SlackSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'slack',
  label: 'Slack',
  settings,
  abilities: SLACK_ABILITIES,
  missing({ token, appToken, signingSecret, mode }: SlackSettings) {
    const proof = mode === 'socket' ? { app_token: appToken } : { signing_secret: signingSecret };
    return Object.entries({ token, ...proof }).flatMap(([key, value]) => (value === null ? [key] : []));
  },
  // Slack gives each event to one of the sockets of an app: two gateways would each hear half.
  credential: (given: SlackSettings) => given.token ?? '',
  async make({ token, appToken, signingSecret, mode, apiRoot }: SlackSettings, runtime) {
    const { Slack } = await import('./platform.ts');
    return new Slack({
      token: token ?? '',
      appToken: appToken ?? '',
      signingSecret: signingSecret ?? '',
      mode,
      apiRoot,
      runtime,
      clock: Date.now,
    });
  },
  setup: {
    steps: [
      'At https://api.slack.com/apps choose "Create New App", "From a manifest", and paste the one from docs/platforms/slack.md.',
      'Under "Basic Information", "App-Level Tokens": make one with the scope connections:write. It looks like xapp-1-...',
      'Under "Install App": install it to the workspace. The bot token looks like xoxb-...',
    ],
    asks: [
      { key: 'token', question: 'The bot token', secret: { variable: 'SLACK_BOT_TOKEN' } },
      { key: 'mode', question: 'How: socket, or http for signed requests; socket if empty', optional: true },
      {
        ...{ key: 'app_token', question: 'The app-level token', secret: { variable: 'SLACK_APP_TOKEN' } },
        when: (answers) => answers.get('mode') !== 'http',
      },
      {
        ...{ key: 'signing_secret', question: 'The signing secret', secret: { variable: 'SLACK_SIGNING_SECRET' } },
        when: (answers) => answers.get('mode') === 'http',
      },
    ],
    afterwards: [
      'Write to the app in Slack, under "Apps". It answers with a code: moirai pairing approve CODE lets you in.',
      'In a channel: /invite the app, then mention it.',
    ],
  },
});
