import { resolve } from 'node:path';
import { setting, type ValueOf } from '../../settings/declaration.ts';
import { fault, kind, optional, secret, text, textLike } from '../../settings/kinds.ts';
import { platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { CHAT_SDK_ABILITIES } from './abilities.ts';

const packageName = textLike(
  (name) => /^(?:@[a-z0-9][\w.-]{0,99}\/)?[a-z0-9][\w.-]{0,99}$/.test(name),
  'no name of a package, such as @chat-adapter/github',
);

const exportName = textLike((name) => /^[A-Za-z_$][\w$]{0,99}$/.test(name), 'no name of an export');

/** From the home. */
const folder = kind((value, context) => resolve(context.home, text.read(value, context)));

const anyObject = kind((value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault('not a map');
  return value as Readonly<Record<string, unknown>>;
});

const settings = platformSection({
  adapter: setting(optional(packageName), null, 'the package of the adapter, such as `@chat-adapter/github`'),
  options: setting(
    secret(optional(anyObject)),
    null,
    'what the adapter is made with, as its own page says; never shown. Its functions cannot be written here',
  ),
  factory: setting(optional(exportName), null, 'the export that makes the adapter, where the package has several'),
  packages_from: setting(
    folder,
    '.',
    'the folder whose `node_modules` has the package, from the home; `npm install --prefix` puts it there',
  ),
});

type ChatSdkSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'chat-sdk',
  label: 'Chat SDK',
  settings,
  abilities: CHAT_SDK_ABILITIES,
  missing: ({ adapter }: ChatSdkSettings) => (adapter === null ? ['adapter'] : []),
  credential: ({ adapter, options }: ChatSdkSettings) => JSON.stringify([adapter, options]),
  async make({ adapter, options, factory, packagesFrom, apiRoot }: ChatSdkSettings, runtime) {
    const { openChatSdk } = await import('./platform.ts');
    const wanted = { name: adapter ?? '', from: packagesFrom, factory };
    // Adapters agree on its name.
    const root = apiRoot === null ? {} : { apiUrl: apiRoot };
    return openChatSdk({ package: wanted, options: { ...root, ...options } }, runtime);
  },
  setup: {
    steps: [
      'Choose an adapter of the Chat SDK, such as @chat-adapter/teams; its page says what to click where.',
      'Install it where the gateway looks: npm install --prefix <home of the gateway> @chat-adapter/teams',
      'At the platform, give its webhook the address https://<this gateway>/platforms/chat-sdk',
    ],
    asks: [{ key: 'adapter', question: 'The package of the adapter' }],
    afterwards: [
      'Write its options into config.yaml, under platforms.chat-sdk.options; secrets as variables of the environment.',
    ],
  },
});
