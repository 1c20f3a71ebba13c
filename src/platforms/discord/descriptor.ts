import type { ValueOf } from '../../settings/declaration.ts';
import { credential, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { DISCORD_ABILITIES } from './abilities.ts';

const settings = platformSection({
  token: credential('the token of the bot, from the Developer Portal', 'DISCORD_BOT_TOKEN'),
});

type DiscordSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'discord',
  label: 'Discord',
  settings,
  abilities: DISCORD_ABILITIES,
  missing: ({ token }: DiscordSettings) => (token === null ? ['token'] : []),
  credential: (given: DiscordSettings) => given.token ?? '',
  async make(given: DiscordSettings, runtime) {
    const { Discord } = await import('./platform.ts');
    return new Discord({ token: given.token ?? '', apiRoot: given.apiRoot, runtime });
  },
  setup: {
    steps: [
      'Open https://discord.com/developers/applications and press New Application.',
      'Under Bot: turn on Message Content Intent, press Reset Token, and copy the token.',
      'Under Installation: choose Guild Install with the scopes applications.commands and bot, and the permissions View Channels, Send Messages, Send Messages in Threads, Create Public Threads, Embed Links, Attach Files, Read Message History and Add Reactions.',
      'Open the install link shown there, and add the bot to your server.',
    ],
    asks: [{ key: 'token', question: 'The token of the bot', secret: { variable: 'DISCORD_BOT_TOKEN' } }],
    afterwards: [
      'Write to the bot directly, from the list of members. It answers with a code: moirai pairing approve CODE lets you in.',
    ],
  },
});
