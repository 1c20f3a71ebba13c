import { named, REQUIRED, section, setting, type ValueOf } from '../../settings/declaration.ts';
import { flag, isShortName, oneOf, optional, secret, text, textLike } from '../../settings/kinds.ts';
import { common } from '../chat-settings.ts';
import { describePlatform } from '../descriptor.ts';
import { WEBHOOK_ABILITIES } from './abilities.ts';

const headerName = textLike((name) => /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name), 'no name of a header');
const target = textLike((name) => name.trim() !== 'origin', 'no place: nothing can be sent back to a program');

/** Some names begin with `whsec_`; what follows is base64. */
const STANDARD_SECRET = /^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/;

const route = section(
  {
    secret: setting(secret(text), REQUIRED, 'what the sender proves itself with; never shown'),
    signature: setting(
      oneOf('standard', 'github', 'stripe', 'slack', 'header'),
      'standard',
      'how it does that: `standard` (Standard Webhooks; the secret is `whsec_` and base64), `github`, `stripe`, `slack`, or `header`, which holds the secret itself',
    ),
    header: setting(headerName, 'x-webhook-secret', 'the header that holds the secret, with `signature: header`'),
    id_header: setting(optional(headerName), null, 'the header that names a delivery, where the sender has its own'),
    prompt: setting(
      text,
      '{{body}}',
      'what the agent is to do, or what is sent on: `{{body}}` is the body, `{{field.path}}` a field of its JSON',
    ),
    deliver: setting(optional(target), null, 'where the result goes, as `moirai send` takes it; null for nowhere'),
    agent: setting(flag, true, 'false: the prompt itself is sent on, and no agent sees it'),
  },
  {
    rule: ({ signature, secret: given, agent, deliver }) => {
      if (signature === 'standard' && given !== undefined && !STANDARD_SECRET.test(given)) {
        return { key: 'signature', fault: 'nothing without a secret of its form: whsec_ and base64' };
      }
      if (agent !== false || deliver !== null) return null;
      return { key: 'agent', fault: 'nothing without deliver, the place to send the prompt to' };
    },
  },
);

export type RouteSettings = ValueOf<typeof route>;

const settings = section({
  enabled: common.enabled,
  routes: named(isShortName, 'no name of a route: letters, digits, ".", "_" and "-", at most 64', route),
});

export const descriptor = describePlatform({
  name: 'webhook',
  label: 'Webhooks',
  settings,
  abilities: WEBHOOK_ABILITIES,
  missing: ({ routes }) => (Object.keys(routes).length === 0 ? ['routes'] : []),
  // Several gateways on one store may take deliveries: what two of them take is known by its id.
  credential: () => null,
  async make({ routes }, runtime) {
    const { Webhooks } = await import('./platform.ts');
    return new Webhooks(routes, runtime);
  },
  setup: {
    steps: [
      'A route is a way in for one sender. The first one is called "events"; config.yaml takes as many as you like.',
      'Make a webhook at the sender for https://<this gateway>/platforms/webhook/events, with JSON bodies.',
      'It shows or takes a secret: that of Standard Webhooks looks like whsec_bGlrZSB0aGlz.',
    ],
    asks: [
      { key: 'routes.events.secret', question: 'The secret', secret: { variable: 'WEBHOOK_EVENTS_SECRET' } },
      {
        ...{ key: 'routes.events.signature', optional: true },
        question: 'How it signs: standard, github, stripe, slack or header',
      },
      { key: 'routes.events.prompt', optional: true, question: 'What to do with it, such as: Look into {{title}}' },
      { key: 'routes.events.deliver', optional: true, question: 'Where the result goes, such as telegram:42' },
    ],
    afterwards: ['What a sender has brought, and what became of it: moirai sessions list --kind webhook'],
  },
});
