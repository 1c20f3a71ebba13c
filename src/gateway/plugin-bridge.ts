import type { ToolPermission, ToolResult, ToolUse } from '../agent/runner.ts';
import type { AgentTool } from '../agent/tools/tool.ts';
import type { Readiness } from '../api/backend.ts';
import { COMMANDS } from '../commands/catalogue.ts';
import type { Config } from '../config/config.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { ExtensionHost } from '../extensions/host/extension-host.ts';
import { Plugins } from '../extensions/plugins/plugins.ts';
import type { Logger } from '../log/logger.ts';
import { OUR_PROVIDERS } from '../memory/create-provider.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { Platform } from '../platforms/platform.ts';
import { PLATFORM_NAMES } from '../platforms/registry.ts';
import type { Store } from '../store/port.ts';
import type { SlashCommand } from '../turns/command.ts';
import type { InboundMessage } from '../turns/conversations.ts';
import type { TurnPlugins, TurnRun } from '../turns/turn-run.ts';

export interface PluginBridgeDeps {
  readonly config: Config;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly extensions: ExtensionHost;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether this process hands them events: else that is left to one that does. */
  readonly primary: boolean;
}

/** Names no plugin can take: built-in tools keep theirs where the tools meet. */
const PLATFORMS = [...PLATFORM_NAMES, 'api', 'cli', 'cron', 'batch'];

/** What the gateway has of its plugins, in the gateway's own shapes. */
export class PluginBridge implements TurnPlugins {
  readonly #plugins: Plugins;

  private constructor(plugins: Plugins) {
    this.#plugins = plugins;
  }

  static async start({
    config,
    store,
    dispatcher,
    extensions: host,
    log,
    environment,
    primary,
  }: PluginBridgeDeps): Promise<PluginBridge> {
    const { maxAttempts, timeoutMs } = config.hooks;
    const commands = COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
    const plugins = await Plugins.start({
      ...{ home: config.home, host, store, log, environment, maxAttempts, timeoutMs },
      dispatcher: primary ? dispatcher : registering(dispatcher),
      reserved: { commands, platforms: PLATFORMS, memoryProviders: OUR_PROVIDERS },
    });
    return new PluginBridge(plugins);
  }

  /** The memory of this name, there as soon as a plugin brings it; null where no plugin can. */
  memoryProvider(name: string): MemoryProvider | null {
    return this.#plugins.memoryProvider(name);
  }

  /** How they stand, and whether the configured memory is there if it has to be one of theirs. */
  checks(memory: string): Readiness['checks'] {
    const wanted = this.#plugins.list().filter(({ state }) => state !== 'disabled');
    const away = wanted.filter(({ state }) => state !== 'ready');
    const detail = away.map(
      ({ name, state, problem }) => `${name} is ${state}${problem === null ? '' : `: ${problem}`}`,
    );
    const isThere =
      ['none', ...OUR_PROVIDERS].includes(memory) ||
      this.#plugins.memoryProviders().some(({ name }) => name === memory);
    const missing = { ok: false, detail: `no plugin that is loaded brings the memory "${memory}"; its events wait` };
    return {
      ...(wanted.length === 0
        ? {}
        : { plugins: { ok: away.length === 0, detail: detail.join('; ') || `${wanted.length} ready` } }),
      ...(isThere ? {} : { memory: missing }),
    };
  }

  get platforms(): readonly Platform[] {
    return this.#plugins.platforms();
  }

  get tools(): readonly AgentTool[] {
    return this.#plugins.tools();
  }

  get commands(): readonly SlashCommand[] {
    return this.#plugins.commands();
  }

  onChange(listener: () => void): void {
    this.#plugins.onChange(listener);
  }

  /** Resolves when all of them are there, or 2 s have passed. */
  loaded(): Promise<void> {
    return this.#plugins.loaded();
  }

  reload(): Promise<void> {
    return this.#plugins.reload();
  }

  stop(): Promise<void> {
    return this.#plugins.stop();
  }

  /** What becomes of something a person says: null when a plugin wants it to be left alone, with its reason. */
  async dispatch({ conversation, text }: InboundMessage): Promise<{ text: string } | { skipped: string }> {
    const { platform, userId: user_id, key: session_key, kind } = conversation;
    const verdict = await this.#plugins.gateDispatch({ text, platform, user_id, session_key, kind });
    return verdict.action === 'pass' ? { text: verdict.text } : { skipped: verdict.reason ?? '' };
  }

  before({ session, turn }: TurnRun, text: string, model: string | null): Promise<string | null> {
    const { id: session_id, key: session_key, platform, userId: user_id } = session;
    return this.#plugins.beforeModel({ session_id, session_key, turn_id: turn.id, text, platform, user_id, model });
  }

  async mayRun(run: TurnRun, use: ToolUse): Promise<ToolPermission> {
    const verdict = await this.#plugins.gateTool(question(run, use));
    if (verdict.action === 'pass') return { allowed: true, args: verdict.args };
    return { allowed: false, reason: verdict.reason };
  }

  ran(run: TurnRun, use: ToolUse, { ok, text, ms }: ToolResult): void {
    this.#plugins.toolDone(question(run, use), { ok, result: text, duration_ms: ms });
  }
}

function question({ session, turn }: TurnRun, { id, tool, args }: ToolUse) {
  const { id: session_id, platform, userId: user_id } = session;
  return { session_id, turn_id: turn.id, tool, args, tool_call_id: id, platform, user_id };
}

/** A terminal beside a gateway: what happens is kept for the plugins, and the gateway hands it to them. */
function registering(dispatcher: Dispatcher): Pick<Dispatcher, 'subscribe' | 'leave'> {
  return {
    subscribe: (subscriber) => dispatcher.register(subscriber),
    leave: async () => undefined,
  };
}
