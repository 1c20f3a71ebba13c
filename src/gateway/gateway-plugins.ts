import type { ToolUse } from '../agent/runner.ts';
import type { Readiness } from '../api/backend.ts';
import { COMMANDS } from '../commands/catalogue.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { ExtensionHost } from '../extensions/host/extension-host.ts';
import { Plugins } from '../extensions/plugins/plugins.ts';
import { OUR_PROVIDERS } from '../memory/create-provider.ts';
import { PLATFORM_NAMES } from '../platforms/registry.ts';
import type { Gate } from '../turns/conversations.ts';
import type { TurnPlugins } from '../turns/turn-deps.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import type { GatewayOptions } from './foundation.ts';

/** Names no plugin can take: built-in tools keep theirs where the tools meet. */
const PLATFORMS = [...PLATFORM_NAMES, 'api', 'cli', 'cron', 'batch'];

/** Starts the plugins of a gateway's home. */
export function startPlugins(
  { config, store, log, environment, primary }: GatewayOptions,
  dispatcher: Dispatcher,
  host: ExtensionHost,
): Promise<Plugins> {
  const { maxAttempts, timeoutMs } = config.hooks;
  const commands = COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  return Plugins.start({
    ...{ home: config.home, host, store, log, environment, maxAttempts, timeoutMs },
    dispatcher: primary ? dispatcher : registering(dispatcher),
    reserved: { commands, platforms: PLATFORMS, memoryProviders: OUR_PROVIDERS },
  });
}

/** A terminal beside a gateway: what happens is kept for the plugins, and the gateway hands it to them. */
function registering(dispatcher: Dispatcher): Pick<Dispatcher, 'subscribe' | 'leave'> {
  return {
    subscribe: (subscriber) => dispatcher.register(subscriber),
    leave: async () => undefined,
  };
}

/** How plugins stand, and whether the configured memory is there if it has to be one of theirs. */
export function pluginChecks(plugins: Plugins, memory: string): Readiness['checks'] {
  const wanted = plugins.list().filter(({ state }) => state !== 'disabled');
  const away = wanted.filter(({ state }) => state !== 'ready');
  const detail = away.map(({ name, state, problem }) => `${name} is ${state}${problem === null ? '' : `: ${problem}`}`);
  const isThere =
    ['none', ...OUR_PROVIDERS].includes(memory) || plugins.memoryProviders().some(({ name }) => name === memory);
  const missing = { ok: false, detail: `no plugin that is loaded brings the memory "${memory}"; its events wait` };
  const refused = plugins.list().flatMap(({ name, problem }) => (problem === null ? [] : [[name, problem] as const]));
  return {
    ...(wanted.length === 0
      ? {}
      : { plugins: { ok: away.length === 0, detail: detail.join('; ') || `${wanted.length} ready` } }),
    ...Object.fromEntries(refused.map(([name, problem]) => [`plugin:${name}`, { ok: false, detail: problem }])),
    ...(isThere ? {} : { memory: missing }),
  };
}

/** What becomes of something a person says: a plugin may change it, or want it to be left alone, with its reason. */
export function dispatchGate(plugins: Plugins): Gate {
  return async ({ conversation, text }) => {
    const { platform, userId: user_id, key: session_key, kind } = conversation;
    const verdict = await plugins.gateDispatch({ text, platform, user_id, session_key, kind });
    return verdict.action === 'pass' ? { text: verdict.text } : { skipped: verdict.reason ?? '' };
  };
}

/** What plugins have to say to a turn. */
export function turnPlugins(plugins: Plugins): TurnPlugins {
  return {
    before: ({ session, turn }, text, model) => {
      const { id: session_id, key: session_key, platform } = session;
      const { id: turn_id, userId: user_id } = turn;
      return plugins.beforeModel({ session_id, session_key, turn_id, text, platform, user_id, model });
    },
    mayRun: async (run, use) => {
      const verdict = await plugins.gateTool(question(run, use));
      if (verdict.action === 'pass') return { allowed: true, args: verdict.args };
      return { allowed: false, reason: verdict.reason };
    },
    ran: (run, use, { ok, text, ms }) => plugins.toolDone(question(run, use), { ok, result: text, duration_ms: ms }),
  };
}

function question({ session, turn }: TurnRun, { id, tool, args }: ToolUse) {
  const { id: session_id, platform } = session;
  return { session_id, turn_id: turn.id, tool, args, tool_call_id: id, platform, user_id: turn.userId };
}
