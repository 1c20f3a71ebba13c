import { section, setting, type ValueOf } from '../../settings/declaration.ts';
import { optional, textLike } from '../../settings/kinds.ts';
import { credential, ownName, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { WHATSAPP_ABILITIES } from './abilities.ts';

const version = textLike((value) => /^v\d{1,3}\.\d{1,2}$/.test(value), 'no version of the Graph API, such as v25.0');
const templateName = textLike(
  (value) => /^[a-z0-9_]{1,512}$/.test(value),
  'no name of a template: small letters, digits and "_"',
);
const language = textLike(
  (value) => /^[a-z]{2,3}(?:_[A-Z]{2,3})?$/.test(value),
  'no language of a template, such as en or en_US',
);

const settings = platformSection({
  phone_number_id: ownName(
    'the id of the number at Meta, which is not the number itself',
    'WHATSAPP_PHONE_NUMBER_ID',
    'WHATSAPP_CLOUD_PHONE_NUMBER_ID',
  ),
  token: credential('the token of a system user', 'WHATSAPP_TOKEN', 'WHATSAPP_CLOUD_ACCESS_TOKEN'),
  app_secret: credential('what Meta signs with', 'WHATSAPP_APP_SECRET', 'WHATSAPP_CLOUD_APP_SECRET'),
  verify_token: credential(
    'a word of yours that Meta shows when it asks for the address',
    'WHATSAPP_VERIFY_TOKEN',
    'WHATSAPP_CLOUD_VERIFY_TOKEN',
  ),
  template: section({
    name: setting(
      optional(templateName),
      null,
      'an approved template with one place for text in its body: an answer that is later than 24 hours goes by it',
    ),
    language: setting(language, 'en', 'the language that the template was made in'),
  }),
  api_version: setting(version, 'v25.0', 'the version of the Graph API'),
});

type WhatsAppSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'whatsapp',
  label: 'WhatsApp',
  settings,
  abilities: WHATSAPP_ABILITIES,
  missing: ({ phoneNumberId, token, appSecret, verifyToken }: WhatsAppSettings) => [
    ...(phoneNumberId === null ? ['phone_number_id'] : []),
    ...(token === null ? ['token'] : []),
    ...(appSecret === null ? ['app_secret'] : []),
    ...(verifyToken === null ? ['verify_token'] : []),
  ],
  // Several numbers may be used with one token.
  credential: ({ phoneNumberId }: WhatsAppSettings) => phoneNumberId ?? '',
  async make(given: WhatsAppSettings, runtime) {
    const { WhatsApp } = await import('./platform.ts');
    const { name, language } = given.template;
    return new WhatsApp({
      phoneNumberId: given.phoneNumberId ?? '',
      token: given.token ?? '',
      appSecret: given.appSecret ?? '',
      verifyToken: given.verifyToken ?? '',
      template: name === null ? null : { name, language },
      apiRoot: given.apiRoot,
      apiVersion: given.apiVersion,
      runtime,
    });
  },
  setup: {
    steps: [
      'At developers.facebook.com: My Apps, Create App, use case "Connect with customers through WhatsApp".',
      'In the app: WhatsApp, API Setup. Add your number. The page shows its Phone number ID.',
      'In business.facebook.com: Settings, System users, Add; give it the app and the WhatsApp account with full control. Generate token, with whatsapp_business_messaging and whatsapp_business_management, that never expires.',
      'In the app: App settings, Basic. App secret, Show.',
    ],
    asks: [
      { key: 'phone_number_id', question: 'The Phone number ID' },
      { key: 'token', question: 'The token of the system user', secret: { variable: 'WHATSAPP_TOKEN' } },
      { key: 'app_secret', question: 'The secret of the app', secret: { variable: 'WHATSAPP_APP_SECRET' } },
      {
        key: 'verify_token',
        question: 'A long word that you make up, to be shown by Meta',
        secret: { variable: 'WHATSAPP_VERIFY_TOKEN' },
      },
    ],
    afterwards: [
      'Start the gateway where Meta reaches it by https. In the app: WhatsApp, Configuration. Callback URL https://YOUR-HOST/platforms/whatsapp, your word as Verify token, Verify and save, then subscribe to the field messages.',
      'Write to the number. It answers with a code: moirai pairing approve CODE lets you in.',
    ],
  },
});
