import { setting, type ValueOf } from '../../settings/declaration.ts';
import { optional, text } from '../../settings/kinds.ts';
import { credential, ownName, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { CARD_ABILITIES } from './abilities.ts';

const settings = platformSection({
  client_id: ownName('the client id of the app, also called AppKey', 'DINGTALK_CLIENT_ID'),
  client_secret: credential('its client secret, also called AppSecret', 'DINGTALK_CLIENT_SECRET'),
  robot_code: setting(optional(text), null, 'the code of the robot; the client id unless given'),
  card_template: setting(
    optional(text),
    null,
    'the id of a card template for replies that grow and questions with buttons; without it both are plain messages',
  ),
  card_variable: setting(text, 'content', 'the variable of the template that holds the words'),
});

type DingtalkSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'dingtalk',
  label: 'DingTalk',
  settings,
  abilities: CARD_ABILITIES,
  missing: ({ clientId, clientSecret }: DingtalkSettings) => [
    ...(clientId === null ? ['client_id'] : []),
    ...(clientSecret === null ? ['client_secret'] : []),
  ],
  credential: ({ clientId }: DingtalkSettings) => clientId ?? '',
  async make(given: DingtalkSettings, runtime) {
    const { Dingtalk } = await import('./platform.ts');
    const { clientId, clientSecret, robotCode, apiRoot, cardTemplate, cardVariable } = given;
    return new Dingtalk({
      clientId: clientId ?? '',
      clientSecret: clientSecret ?? '',
      robotCode: robotCode ?? clientId ?? '',
      apiRoot,
      card: cardTemplate === null ? null : { template: cardTemplate, variable: cardVariable },
      runtime,
    });
  },
  setup: {
    steps: [
      'Open open-dev.dingtalk.com as a developer of your organisation, and create an internal app.',
      'Add the ability "robot" to it, and choose stream mode for its messages.',
      'Give it the permissions qyapi_robot_sendmsg, Card.Instance.Write and Card.Streaming.Write, and publish a version.',
      'Its client id and client secret stand under "Credentials & basic info".',
    ],
    asks: [
      { key: 'client_id', question: 'The client id of the app' },
      { key: 'client_secret', question: 'Its client secret', secret: { variable: 'DINGTALK_CLIENT_SECRET' } },
      { key: 'card_template', question: 'The id of a template for AI cards, if you have one', optional: true },
    ],
    afterwards: ['Write to the robot. It answers with a code: moirai pairing approve CODE lets you in.'],
  },
});
