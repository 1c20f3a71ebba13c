import { MoiraiError } from '../../errors/moirai-error.ts';
import type { DispatchQuestion, ToolOutcome, ToolQuestion, TurnQuestion } from './api.ts';
import { askContext, askDispatch, askTool, type DispatchVerdict, type ToolVerdict } from './gates.ts';
import { Generations, type PluginsOptions } from './generations.ts';
import type { LivePlugin } from './live-plugin.ts';
import { awaitedMemory, type PluginMemory } from './memory-offer.ts';
import type { PluginMemoryProvider } from './memory-types.ts';
import { askDanger, type PluginCommand, type PluginTool } from './offers.ts';
import type { PluginPlatform } from './plugin-platform.ts';
import type { PluginStatus } from './plugin-status.ts';

/** What a process that is blocked has not heard of yet; more is left out. */
const MOST_TOLD = 256;
const LONGEST_RESULT = 32_000;

/**
 * The plugins in `<home>/plugins`, each in a process of its own: what they offer, and what they say when they are asked.
 * Where there are none, nothing of this costs anything.
 */
export class Plugins {
  readonly #generations: Generations;
  readonly #timeoutMs: number;
  readonly #told = new WeakMap<LivePlugin, number>();

  private constructor(generations: Generations, timeoutMs: number) {
    this.#generations = generations;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Reads what plugins there are, and begins to load them. Waits for none of them; one that cannot be used is reported,
   * and stops nothing.
   */
  static async start(options: PluginsOptions): Promise<Plugins> {
    const generations = new Generations(options);
    await generations.scan();
    return new Plugins(generations, options.timeoutMs);
  }

  list(): PluginStatus[] {
    return this.#generations.statuses();
  }

  /** Loads what changed, or everything, in fresh processes, each of which then replaces the one before. */
  reload(which: 'changed' | 'all' = 'changed'): Promise<void> {
    return this.#generations.reload(which);
  }

  /** Resolves when every plugin was loaded or refused once, or after 2 s. */
  loaded(): Promise<void> {
    return this.#generations.loaded();
  }

  tools(): readonly PluginTool[] {
    return this.#generations.current.tools;
  }

  commands(): readonly PluginCommand[] {
    return this.#generations.current.commands;
  }

  memoryProviders(): readonly PluginMemory[] {
    return this.#generations.current.memoryProviders;
  }

  /** The memory of this name, there as soon as a plugin that brings it is loaded; null where there is no plugin at all. */
  memoryProvider(name: string): PluginMemoryProvider | null {
    const generations = this.#generations;
    const find = (): PluginMemory | undefined => this.memoryProviders().find((provider) => provider.name === name);
    return generations.statuses().length === 0 ? null : awaitedMemory(name, find, () => generations.firstLoads());
  }

  platforms(): readonly PluginPlatform[] {
    return this.#generations.current.platforms;
  }

  /** Calls when there may be other tools, commands, providers or platforms than before; the returned function ends it. */
  onChange(listener: () => void): () => void {
    return this.#generations.onChange(listener);
  }

  /** Whether a message reaches the agent, and how it reads. */
  async gateDispatch(message: DispatchQuestion): Promise<DispatchVerdict> {
    const gates = await this.#generations.gates('pre_gateway_dispatch');
    return gates.length === 0 ? { action: 'pass', text: message.text } : askDispatch(gates, message);
  }

  /** Whether a tool is run, and with what. To be asked before `dangerous`, and to be followed in its arguments. */
  async gateTool(call: ToolQuestion): Promise<ToolVerdict> {
    const gates = await this.#generations.gates('pre_tool_call');
    const verdict: ToolVerdict = gates.length === 0 ? { action: 'pass', args: call.args } : await askTool(gates, call);
    const tool = this.#generations.current.toolOffers.get(call.tool);
    if (verdict.action === 'pass' && tool !== undefined) {
      await askDanger(tool.live, tool.offer, verdict.args);
    }
    return verdict;
  }

  /** What plugins add to a turn; null for nothing. */
  async beforeModel(turn: TurnQuestion): Promise<string | null> {
    const gates = await this.#generations.gates('pre_llm_call');
    return gates.length === 0 ? null : askContext(gates, turn);
  }

  /** Tells of a tool that was run. Nobody waits for it. */
  toolDone(call: ToolQuestion, outcome: ToolOutcome): void {
    for (const live of this.#generations.current.hearTools) {
      const told = this.#told.get(live) ?? 0;
      if (told >= MOST_TOLD) continue;
      this.#told.set(live, told + 1);
      const done = { ...call, ...outcome, result: outcome.result.slice(0, LONGEST_RESULT) };
      live
        .call({ what: 'tool_done', done }, { timeoutMs: this.#timeoutMs })
        .catch((thrown: unknown) => live.failed(MoiraiError.wrap(thrown)))
        .finally(() => this.#told.set(live, (this.#told.get(live) ?? 1) - 1));
    }
  }

  /** Ends every plugin. What was not finished comes again at the next start. */
  stop(): Promise<void> {
    return this.#generations.stop();
  }
}
