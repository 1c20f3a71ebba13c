import { API_SCOPES } from '../lifecycle/api-scopes.ts';
import { isPlatformName } from '../lifecycle/session-key.ts';
import { platformSettings } from '../platforms/registry.ts';
import { entry, FromVariable, list, listOf, named, REQUIRED, section, setting } from '../settings/declaration.ts';
import {
  flag,
  hostName,
  identifier,
  isShortName,
  oneOf,
  optional,
  origin,
  plainText,
  secret,
  share,
  shortName,
  size,
  text,
  timer,
  webAddress,
  whole,
} from '../settings/kinds.ts';

import {
  addressRange,
  commandPattern,
  eventPattern,
  longKey,
  person,
  signingSecret,
  storeUrl,
  workspace,
} from './kinds.ts';

import { model } from './model-settings.ts';
import { sessions } from './session-settings.ts';

const apiKey = section({
  name: setting(shortName, REQUIRED, 'what it is called; the conversations of its holder go by it'),
  key: setting(secret(longKey), REQUIRED, 'what is sent as `Authorization: Bearer ...`, at least 20 characters'),
  scopes: listOf(
    entry(oneOf(...API_SCOPES)),
    '`chat` talks, and sees its own conversations; `read` sees everything; `admin` may do everything',
    { byDefault: ['chat'] },
  ),
});

const gateway = section(
  {
    host: setting(
      hostName,
      '127.0.0.1',
      'the address to listen on. One that is not loopback needs `gateway.api_key` or `gateway.keys`: whoever reaches it could use the agent',
    ),
    port: setting(whole(0, 65_535), 8787, '0 takes any free port'),
    api_key: setting(
      secret(optional(text)),
      null,
      'what HTTP clients send as `Authorization: Bearer ...`, with every scope. Without one, and without `gateway.keys`, programs of this machine are let in without a key',
    ),
    keys: listOf(
      apiKey,
      'more keys, each with a name and scopes; see [security](security.md). `moirai keys add` keeps others in the store',
      {
        check: (all) => {
          if (new Set(all.map(({ name }) => name)).size < all.length)
            return 'a list in which two keys have the same name';
          return new Set(all.map(({ key }) => key)).size < all.length ? 'a list in which a key stands twice' : null;
        },
      },
    ),
    trusted_proxies: list(
      addressRange,
      'reverse proxies, by address or network (`10.0.0.0/8`), whose `X-Forwarded-For` or `Forwarded` says where a request came from',
    ),
    name: setting(optional(text), null, 'what this gateway is called in the dashboard'),
    drain_timeout: setting(
      timer(0),
      '60s',
      'how long running turns may go on when the gateway is asked to stop; what is cut is resumed later',
    ),
    max_concurrent_turns: setting(whole(1), 16, 'how many turns run at once; others wait'),
    allowed_origins: list(origin, 'web pages that may call the gateway beside its own, such as `https://example.org`'),
  },
  {
    rule: ({ host, apiKey, keys }) =>
      host === undefined || isLoopback(host) || apiKey !== null || keys === undefined || keys.length > 0
        ? null
        : { key: 'host', fault: 'no loopback address: whoever reaches it could use the agent, so set gateway.api_key' },
  },
);

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

const agent = section({
  max_steps: setting(whole(1), 50, 'how many steps one turn may take'),
  turn_timeout: setting(timer(), '30m', 'how long a turn may go on without progress'),
  busy_mode: setting(
    oneOf('queue', 'interrupt', 'steer'),
    'queue',
    'what a message does that comes during a turn: `queue` waits, `interrupt` stops the turn, `steer` is told to the agent at its next step',
  ),
  system_prompt: setting(optional(text), null, "what the agent is told about itself; null for Moirai's own text"),
  cache: section({
    max_size: setting(whole(1), 128, 'how many agents stay in memory between turns'),
    idle_ttl: setting(timer(), '1h', 'how long an idle one stays'),
    max_bytes: setting(size, '256MB', 'how much they hold together'),
  }),
  workspace: setting(
    workspace,
    'conversation',
    'where tools work: `conversation` for a folder of its own for each, in `workspaces` of the home; `shared` for `workspace` there; or the path of a shared folder, from the home',
  ),
  max_received: setting(
    size,
    '500MB',
    'how much the files that people sent may take in `received` of the workspace, and those sent to them in `sent`; the oldest make room for new ones',
  ),
  allow_commands: list(
    commandPattern,
    'whole commands that run without asking, word by word: `[git status, git log *, cat ..., ls **]`; see [commands](security.md#commands)',
  ),
  sandbox: setting(
    oneOf('off', 'bubblewrap'),
    'off',
    '`bubblewrap` keeps commands in their workspace: nothing else can be written, no home is there; see [sandbox](security.md#sandbox)',
  ),
  sandbox_network: setting(flag, false, 'whether a command in the sandbox has the network'),
  approval_timeout: setting(timer(), '5m', 'how long a person has to allow something; after that it is a no'),
});

const webhook = section({
  name: setting(shortName, REQUIRED, 'what it is called in lists and logs; keep it, its place in the log goes by it'),
  url: setting(webAddress, REQUIRED, 'where events are posted'),
  secret: setting(
    secret(signingSecret),
    REQUIRED,
    '`whsec_` and base64: what the bodies are signed with (Standard Webhooks)',
  ),
  events: listOf(entry(eventPattern), 'types of [events.md](events.md), `prefix:*`, or `*`', { byDefault: REQUIRED }),
});

const hooks = section({
  timeout: setting(timer(), '30s', 'how long a hook may take for one event'),
  max_attempts: setting(whole(1), 8, 'how often it is tried before the event becomes a dead letter'),
  webhooks: listOf(webhook, 'addresses that events are sent to', {
    check: (all) =>
      new Set(all.map(({ name }) => name)).size === all.length
        ? null
        : 'a list in which two webhooks have the same name',
  }),
});

const memory = section({
  provider: setting(
    shortName,
    'files',
    '`files`, `sqlite`, `mem0`, `honcho`, `supermemory`, `none`, or what a plugin calls its own; see [memory](memory.md)',
  ),
  base_url: setting(optional(webAddress), null, 'the address of a memory service; null for its own'),
  api_key: setting(secret(optional(text)), null, 'its key'),
  review_every: setting(
    whole(0),
    10,
    'after how many answered messages the agent looks over a conversation for what is worth remembering, and once more at its end; 0 is never',
  ),
  review_min_turns: setting(whole(1), 3, 'a conversation with fewer answered messages is not looked over at its end'),
});

const access = section({
  allow: list(person, 'who may talk to the agent: `telegram:42`, `telegram:*`, or `*` for everybody'),
  pairing: setting(flag, true, 'whether a stranger gets a code that `moirai pairing approve` lets in'),
  admins: list(person, 'who may do everything, beside those whom `moirai pairing` made admins'),
  approvals: setting(
    oneOf('admins', 'asker'),
    'admins',
    'who may allow what the agent asks for: `admins` alone, or also the `asker`, whose message it works for',
  ),
  commands: section({
    dm: list(shortName, "the commands others may give in direct chats; with none named, all but an operator's"),
    group: list(shortName, 'the same for groups, channels and threads'),
  }),
});

/** Names and values of which the values are secret. */
function secretTexts(help: string) {
  return named(() => true, 'no name', entry(secret(plainText)), help);
}

const mcpServer = section(
  {
    command: setting(optional(text), null, 'the program to start; a server has either this or a url'),
    args: list(identifier, 'its arguments'),
    env: secretTexts('its environment; never shown'),
    url: setting(optional(webAddress), null, 'the address to connect to'),
    headers: secretTexts('what to send along; never shown'),
    allow_tools: list(
      text,
      'tools of it that run without asking, beside those that it marks as reading only: by name, or `*` for all',
    ),
  },
  {
    rule: ({ command, url }) => {
      if (command === undefined || url === undefined || (command === null) !== (url === null)) return null;
      return command === null
        ? { key: 'command', fault: 'missing; a server has either a command or a url' }
        : { key: 'url', fault: 'one too many: a server has either a command or a url' };
    },
  },
);

/** Null leaves it to what is less particular: the gateway, then the platform. */
const display = {
  streaming: setting(optional(flag), null, 'replies grow while they are written, where messages can be changed'),
  typing: setting(optional(flag), null, 'typing shows while a turn runs'),
  reactions: setting(optional(flag), null, 'a sign at the message that is being answered'),
  tool_progress: setting(
    optional(oneOf('off', 'names', 'all')),
    null,
    '`off`, `names` of the tools that run, or `all` with their arguments',
  ),
  footer: setting(optional(flag), null, 'model and tokens below a reply'),
};

/** The whole of `config.yaml`. */
export const configSettings = section({
  gateway,
  store: section({
    url: setting(
      storeUrl,
      'sqlite:state.db',
      '`sqlite:FILE`, relative to the home, or `postgres://user:password@host/database`. `--store` wins over it',
    ),
  }),
  model,
  agent,
  sessions,
  hooks,
  memory,
  access,
  platforms: platformSettings,
  mcp: section({ servers: named(isShortName, 'no name for a server', mcpServer) }),
  cron: section({ enabled: setting(flag, true, 'whether this gateway runs what is [scheduled](cron.md)') }),
  display: section({
    ...display,
    platforms: named(
      isPlatformName,
      'not the name of a platform',
      section(display),
      'the same fields for one platform, by its name',
    ),
  }),
  log: section({
    level: setting(
      oneOf('debug', 'info', 'warn', 'error', 'silent'),
      'info',
      '`debug`, `info`, `warn`, `error` or `silent`',
    ),
    format: setting(
      oneOf('pretty', 'json'),
      'pretty',
      '`pretty` for people, `json` for programs: one object a line, on standard error',
    ),
  }),
  tracing: section({
    endpoint: setting(
      optional(webAddress),
      new FromVariable('OTEL_EXPORTER_OTLP_ENDPOINT'),
      'where the collector takes OTLP over HTTP; `/v1/traces` is added to it',
    ),
    service_name: setting(text, 'moirai', 'what the gateway is called there'),
    sample: setting(share, 1, 'which part of all traces is sent, from 0 to 1'),
    headers: secretTexts('what to send along; never shown'),
  }),
});
