import { entry, listOf, setting, type ValueOf } from '../../settings/declaration.ts';
import { identifier, optional, origin, text, textLike } from '../../settings/kinds.ts';
import { credential, platformSection } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { MATRIX_ABILITIES } from './abilities.ts';
import { isInviteRule } from './invite-rule.ts';

const userId = textLike(
  (id) => /^@[^\s:]+:\S+$/.test(id),
  'no user id; user ids look like @agent:example.org',
  identifier,
);

const inviteRule = textLike(
  isInviteRule,
  'no rule for invites: `allow`, `server`, `*`, `*:example.org` or a user id such as @ada:example.org',
  text,
);

const settings = platformSection({
  homeserver: setting(
    optional(origin),
    null,
    'where the homeserver is, such as https://matrix.example.org; `api_root` wins over it',
  ),
  token: credential("the access token of the agent's account", 'MATRIX_ACCESS_TOKEN'),
  user_id: setting(
    optional(userId),
    null,
    'who the agent is, such as @agent:example.org; the homeserver says it, and a token of somebody else is refused if it is given',
  ),
  invites: listOf(
    entry(inviteRule),
    "who may invite the agent into rooms: `allow` (those in `allow`), `server` (people of the agent's own server), `*:example.org`, a user id, `*` (everybody); `[]` for nobody",
    { byDefault: ['allow', 'server'] },
  ),
});

type MatrixSettings = Omit<ValueOf<typeof settings>, 'accounts'>;

export const descriptor = describePlatform({
  name: 'matrix',
  label: 'Matrix',
  settings,
  abilities: MATRIX_ABILITIES,
  missing: ({ homeserver, apiRoot, token }: MatrixSettings) => [
    ...(homeserver === null && apiRoot === null ? ['homeserver'] : []),
    ...(token === null ? ['token'] : []),
  ],
  credential: (given: MatrixSettings) => given.token ?? '',
  async make(given: MatrixSettings, runtime) {
    const { Matrix } = await import('./platform.ts');
    return new Matrix({
      homeserver: given.apiRoot ?? given.homeserver ?? '',
      token: given.token ?? '',
      userId: given.userId,
      invites: { rules: given.invites, allow: given.allow },
      runtime,
    });
  },
  setup: {
    steps: [
      'Make an account for the agent on a homeserver, as for a person: with Element, or as its administrator.',
      'Log in with it in Element. Under All settings > Help & About it shows the homeserver and, at the end, the access token. Close the window without logging out: that would end the token.',
    ],
    asks: [
      { key: 'homeserver', question: 'The address of the homeserver, such as https://matrix.example.org' },
      { key: 'token', question: 'The access token', secret: { variable: 'MATRIX_ACCESS_TOKEN' } },
    ],
    afterwards: [
      'Make a room with encryption turned off and invite the agent. Write there: it answers with a code, and moirai pairing approve CODE lets you in.',
    ],
  },
});
