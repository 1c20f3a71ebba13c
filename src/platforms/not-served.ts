import { named, REQUIRED, section, setting } from '../settings/declaration.ts';
import { isShortName, optional, secret, text } from '../settings/kinds.ts';
import { apiRoot, enabled, people, token } from './chat-settings.ts';
import { declarePlatform } from './descriptor.ts';

/*
 * Platforms that can be configured although this version does not serve them. A platform that comes to be served gets its
 * own folder, and leaves this file.
 */

export const discord = declarePlatform({
  name: 'discord',
  settings: section({ enabled, token: token('DISCORD_BOT_TOKEN'), api_root: apiRoot, ...people }),
});

export const slack = declarePlatform({
  name: 'slack',
  settings: section({
    enabled,
    token: token('SLACK_BOT_TOKEN'),
    app_token: token('SLACK_APP_TOKEN'),
    api_root: apiRoot,
    ...people,
  }),
});

const route = section({
  secret: setting(secret(text), REQUIRED, 'what the sender signs with'),
  prompt: setting(optional(text), null, 'what the agent is to do with what comes in'),
  deliver: setting(optional(text), null, 'where the answer goes, as `moirai send` takes it'),
});

export const webhook = declarePlatform({
  name: 'webhook',
  settings: section({
    enabled: { ...enabled, help: 'ways in for other programs' },
    routes: named(isShortName, 'no name for a route', route),
  }),
});
