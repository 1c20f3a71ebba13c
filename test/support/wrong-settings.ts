/** A wrong value for every key there is. */
const WRONG: Readonly<Record<string, unknown>> = {
  'gateway.host': 'http://x',
  'gateway.port': 65_536,
  'gateway.api_key': '',
  'gateway.name': 5,
  'gateway.drain_timeout': 60,
  'gateway.max_concurrent_turns': 0,
  'gateway.allowed_origins': ['https://x/path'],
  'store.url': 'mysql://x',
  'model.provider': 'openia',
  'model.name': [],
  'model.base_url': 'localhost:11434',
  'model.api_key': 12,
  'model.context_window': 0.5,
  'model.price_in': -1,
  'model.price_out': 'dear',
  'agent.max_steps': 'many',
  'agent.turn_timeout': '0s',
  'agent.busy_mode': 'wait',
  'agent.system_prompt': {},
  'agent.cache.max_size': -1,
  'agent.cache.idle_ttl': '1w',
  'agent.cache.max_bytes': 256,
  'agent.workspace': true,
  'agent.allow_commands': 'ls',
  'agent.approval_timeout': '25d',
  'sessions.reset.mode': 'off',
  'sessions.reset.idle': '0s',
  'sessions.reset.at': '24:00',
  'sessions.reset.timezone': 'Mars/Base',
  'sessions.reset.notify': 'no',
  'sessions.reset.notify_exclude': 'api',
  'sessions.group_per_user': 1,
  'sessions.thread_per_user': null,
  'sessions.heartbeat': '15 s',
  'sessions.lease_ttl': '1y',
  'sessions.resume_window': '-1s',
  'sessions.stuck_after': 0,
  'sessions.retention.chat': 'forever',
  'sessions.retention.cli': 1,
  'sessions.retention.cron': '0d',
  'sessions.retention.webhook': '',
  'sessions.retention.batch': [],
  'sessions.retention.api': '30',
  'sessions.retention.child': '40000d',
  'hooks.timeout': '0ms',
  'hooks.max_attempts': 0,
  'hooks.webhooks': { name: 'x' },
  'hooks.webhooks[].name': 'a b',
  'hooks.webhooks[].url': 'ftp://x',
  'hooks.webhooks[].secret': 'plain',
  'hooks.webhooks[].events': [],
  'memory.provider': null,
  'memory.base_url': 'localhost:11434',
  'memory.api_key': 12,
  'memory.review_every': -1,
  'access.allow': '*',
  'access.pairing': 'maybe',
  'access.admins': [null],
  'platforms.telegram.enabled': 'x',
  'platforms.telegram.token': 5,
  'platforms.telegram.api_root': 'x',
  'platforms.telegram.mode': 'push',
  'platforms.telegram.webhook_url': 'x',
  'platforms.telegram.webhook_secret': 5,
  'platforms.telegram.allow': [2 ** 60],
  'platforms.discord.enabled': 'x',
  'platforms.discord.token': '',
  'platforms.discord.api_root': 'x',
  'platforms.discord.allow': 'x',
  'platforms.slack.enabled': 'x',
  'platforms.slack.token': {},
  'platforms.slack.app_token': 1,
  'platforms.slack.api_root': 'x',
  'platforms.slack.allow': [[]],
  'platforms.webhook.enabled': 'x',
  'platforms.webhook.routes.*.secret': null,
  'platforms.webhook.routes.*.prompt': 5,
  'platforms.webhook.routes.*.deliver': 5,
  'platforms.web.enabled': 0,
  'mcp.servers.*.command': 5,
  'mcp.servers.*.args': 'x',
  'mcp.servers.*.env.*': [],
  'mcp.servers.*.url': 'x',
  'mcp.servers.*.headers.*': {},
  'cron.enabled': 'on',
  'log.level': 'verbose',
  'log.format': 'text',
};
const RESET = ['mode', 'idle', 'at', 'timezone', 'notify', 'notify_exclude'];
const OVERRIDES = [
  'reset_by_type.dm',
  'reset_by_type.group',
  'reset_by_type.channel',
  'reset_by_type.thread',
  'reset_by_platform.*',
];
/** The same for every override of the reset policy. */
export const WRONG_SETTINGS: Readonly<Record<string, unknown>> = {
  ...WRONG,
  ...Object.fromEntries(
    OVERRIDES.flatMap((over) => RESET.map((field) => [`sessions.${over}.${field}`, WRONG[`sessions.reset.${field}`]])),
  ),
};

/** The object in which only this path is set; `*` is some name, `[]` the first of a list. */
export function settingAt(path: string, value: unknown): object {
  const [first = '', ...rest] = path.split('.');
  const inner = rest.length === 0 ? value : settingAt(rest.join('.'), value);
  if (first.endsWith('[]')) return { [first.slice(0, -2)]: [inner] };
  return { [first === '*' ? 'some' : first]: inner };
}

/** The path as a problem of `settingAt` names it. */
export function pathShown(path: string): string {
  return path.replaceAll('*', 'some').replaceAll('[]', '[0]');
}
