import type { ToolPermission, ToolResult, ToolUse } from '../agent/runner.ts';
import type { AgentTool } from '../agent/tools/tool.ts';
import type { Config } from '../config/config.ts';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { Logger } from '../log/logger.ts';
import { OUR_PROVIDERS } from '../memory/create-provider.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { Platform } from '../platforms/platform.ts';
import { PLATFORM_NAMES } from '../platforms/registry.ts';
import { Plugins } from '../plugins/plugins.ts';
import type { Store } from '../store/port.ts';
import { COMMANDS } from './commands/catalogue.ts';
import type { SlashCommandSpec } from './commands/command.ts';
import type { InboundMessage } from './conversations.ts';
import type { TurnPlugins, TurnRun } from './turn-run.ts';

export interface PluginBridgeDeps {
  readonly config: Config;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
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
    log,
    environment,
    primary,
  }: PluginBridgeDeps): Promise<PluginBridge> {
    const { maxAttempts, timeoutMs } = config.hooks;
    const commands = COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
    const plugins = await Plugins.start({
      ...{ home: config.home, store, log, environment, maxAttempts, timeoutMs },
      dispatcher: primary ? dispatcher : registering(dispatcher),
      reserved: { commands, platforms: PLATFORMS, memoryProviders: OUR_PROVIDERS },
    });
    return new PluginBridge(plugins);
  }

  get memoryProviders(): readonly MemoryProvider[] {
    return this.#plugins.memoryProviders();
  }

  get platforms(): readonly Platform[] {
    return this.#plugins.platforms();
  }

  get tools(): readonly AgentTool[] {
    return this.#plugins.tools();
  }

  get commands(): readonly SlashCommandSpec[] {
    return this.#plugins.commands();
  }

  onChange(listener: () => void): void {
    this.#plugins.onChange(listener);
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
