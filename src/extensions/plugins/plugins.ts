import { MoiraiError } from '../../errors/moirai-error.ts';
import { hookEnvironment } from '../host/environment.ts';
import { ExtensionFolder, FaultReporter } from '../host/extension-folder.ts';
import { type ExtensionOptions, Subscriptions } from '../host/subscriptions.ts';
import type {
  DispatchQuestion,
  GateName,
  InboxMessage,
  PluginMemoryProvider,
  ToolOutcome,
  ToolQuestion,
  TurnQuestion,
} from './api.ts';
import {
  askContext,
  askDispatch,
  askTool,
  closedGate,
  type DispatchVerdict,
  type Gate,
  type ToolVerdict,
} from './gates.ts';
import { formGeneration, type Generation, type ReservedNames } from './generation.ts';
import { LivePlugin, type Supervisor } from './live-plugin.ts';
import { awaitedMemory, type PluginMemory } from './memory-offer.ts';
import type { PluginCommand, PluginTool } from './offers.ts';
import { closedGatesIn, type FoundPlugin, PLUGIN_KIND, type PluginFiles } from './plugin-kind.ts';
import type { PluginPlatform } from './plugin-platform.ts';
import { PLUGIN_LIMITS, type PluginDeps, type PluginLimits } from './plugin-process.ts';
import { type PluginStatus, statusOf } from './plugin-status.ts';

export interface PluginsOptions extends ExtensionOptions {
  /** Names that the gateway has itself. */
  readonly reserved?: ReservedNames;
  readonly limits?: Partial<PluginLimits>;
}

/** At a stop, what is under way has so long to finish. */
const STOP_GRACE_MS = 2000;
/** What has to be asked waits so long for plugins that are loaded for the first time. */
const FIRST_LOAD_MS = 2000;
/** What a process that is blocked has not heard of yet; more is left out. */
const MOST_TOLD = 256;
const LONGEST_RESULT = 32_000;

/**
 * The plugins in `<home>/plugins`, each in a process of its own: what they offer, and what they say when they are asked.
 * Where there are none, nothing of this costs anything. What they offer at one moment is one generation: after a change
 * the new process is loaded first, and then the generation is replaced as a whole.
 */
export class Plugins {
  readonly #options: PluginsOptions;
  readonly #deps: PluginDeps;
  readonly #live = new Map<string, LivePlugin>();
  readonly #subscriptions: Subscriptions;
  readonly #folder: ExtensionFolder<PluginFiles>;
  /** Of what is offered in vain. */
  readonly #withheld: FaultReporter;
  readonly #changed = new Set<() => void>();
  readonly #told = new WeakMap<LivePlugin, number>();
  readonly #supervisor: Supervisor = { changed: () => this.#replace(), settle: () => this.#settle() };
  #found: readonly FoundPlugin[] = [];
  #closed: readonly Gate[] = [];
  #current: Generation;
  /** Platforms that may be started in a process. */
  #platforms: readonly PluginPlatform[] = [];
  #reloadAll = false;
  #settling: Promise<void> = Promise.resolve();
  #stopped = false;

  private constructor(options: PluginsOptions) {
    const { home, host, log, environment, limits, timeoutMs } = options;
    this.#options = options;
    this.#deps = {
      ...{ home, host, log, timeoutMs, environment: hookEnvironment(environment, home) },
      limits: { ...PLUGIN_LIMITS, ...limits },
      receive: (plugin, platform, message) => this.#receive(plugin, platform, message),
    };
    this.#subscriptions = new Subscriptions(PLUGIN_KIND.word, options);
    this.#withheld = new FaultReporter(PLUGIN_KIND.word, log);
    this.#current = this.#form();
    this.#folder = new ExtensionFolder({
      ...{ home, kind: PLUGIN_KIND, timers: host.timers, log },
      apply: (found) => this.#apply(found),
    });
  }

  /**
   * Reads what plugins there are, and begins to load them. Waits for none of them; one that cannot be used is reported,
   * and stops nothing.
   */
  static async start(options: PluginsOptions): Promise<Plugins> {
    const plugins = new Plugins(options);
    await plugins.#folder.look();
    return plugins;
  }

  list(): PluginStatus[] {
    const statuses = this.#found.map((found) => statusOf(found, this.#liveOf(found), this.#current));
    return statuses.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Loads what changed, or everything, in fresh processes, each of which then replaces the one before. */
  async reload(which: 'changed' | 'all' = 'changed'): Promise<void> {
    this.#reloadAll ||= which === 'all';
    await this.#folder.look();
    await Promise.all(this.#all.map(({ latestLoad }) => latestLoad));
  }

  /** Resolves when every plugin was loaded or refused once, or after 2 s. */
  async loaded(): Promise<void> {
    if (!this.#all.some(({ state }) => state === 'loading')) return;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.host.timers.after(FIRST_LOAD_MS, resolve);
    await Promise.race([this.#firstLoads(), late]);
    cancel();
  }

  tools(): readonly PluginTool[] {
    return this.#current.tools;
  }

  commands(): readonly PluginCommand[] {
    return this.#current.commands;
  }

  memoryProviders(): readonly PluginMemory[] {
    return this.#current.memoryProviders;
  }

  /** The memory of this name, there as soon as a plugin that brings it is loaded; null where there is no plugin at all. */
  memoryProvider(name: string): PluginMemoryProvider | null {
    const find = (): PluginMemory | undefined => this.memoryProviders().find((provider) => provider.name === name);
    return this.#found.length === 0 ? null : awaitedMemory(name, find, () => this.#firstLoads());
  }

  platforms(): readonly PluginPlatform[] {
    return this.#current.platforms;
  }

  /** Calls when there may be other tools, commands, providers or platforms than before; the returned function ends it. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  /** Whether a message reaches the agent, and how it reads. */
  async gateDispatch(message: DispatchQuestion): Promise<DispatchVerdict> {
    return askDispatch(await this.#gates('pre_gateway_dispatch'), message);
  }

  /** Whether a tool is run, and with what. To be asked before `dangerous`, and to be followed in its arguments. */
  async gateTool(call: ToolQuestion): Promise<ToolVerdict> {
    const verdict = await askTool(await this.#gates('pre_tool_call'), call);
    const tool = this.tools().find(({ name }) => name === call.tool);
    if (verdict.action === 'pass') await tool?.askDanger(verdict.args);
    return verdict;
  }

  /** What plugins add to a turn; null for nothing. */
  async beforeModel(turn: TurnQuestion): Promise<string | null> {
    return askContext(await this.#gates('pre_llm_call'), turn);
  }

  /** Tells of a tool that was run. Nobody waits for it. */
  toolDone(call: ToolQuestion, outcome: ToolOutcome): void {
    for (const live of this.#current.hearTools) {
      const told = this.#told.get(live) ?? 0;
      if (told >= MOST_TOLD) continue;
      this.#told.set(live, told + 1);
      const done = { ...call, ...outcome, result: outcome.result.slice(0, LONGEST_RESULT) };
      live
        .call('tool_done', [done], { timeoutMs: this.#options.timeoutMs })
        .catch((thrown: unknown) => live.failed(MoiraiError.wrap(thrown)))
        .finally(() => this.#told.set(live, (this.#told.get(live) ?? 1) - 1));
    }
  }

  /** Ends every plugin. What was not finished comes again at the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#folder.close();
    await this.#settling;
    await this.#subscriptions.serve([]);
    await Promise.all(this.#platforms.map((platform) => platform.halt()));
    await Promise.all(this.#all.map((live) => live.close(STOP_GRACE_MS)));
  }

  get #all(): LivePlugin[] {
    return [...this.#live.values()];
  }

  /** Who is to be asked, as soon as that is known: one that is closed until it is loaded is waited for. */
  async #gates(name: GateName): Promise<readonly Gate[]> {
    await this.loaded();
    const closed = this.#all.filter(({ gates }) =>
      gates.some(({ gate, onFailure }) => gate === name && onFailure === 'closed'),
    );
    await Promise.all(closed.map(({ firstLoad }) => firstLoad));
    return this.#current.gates[name];
  }

  /** Resolves when every plugin was loaded or refused once. */
  async #firstLoads(): Promise<void> {
    await Promise.all(this.#all.map(({ firstLoad }) => firstLoad));
  }

  async #apply(found: readonly FoundPlugin[]): Promise<void> {
    const all = this.#reloadAll;
    this.#reloadAll = false;
    this.#found = found;
    const leaving = this.#leaving();
    for (const live of leaving) this.#live.delete(live.name);
    const closed = await this.#closedGates();
    let isNew = false;
    for (const plugin of found) {
      if (plugin.state !== 'ready') continue;
      const live = this.#live.get(plugin.name) ?? new LivePlugin(plugin, this.#deps, this.#supervisor);
      isNew ||= live.state === 'loading' || live.state === 'bad';
      this.#live.set(plugin.name, live);
      if (all || !live.knows(plugin)) live.use(plugin);
    }
    const wasClosed = JSON.stringify(this.#closed);
    this.#closed = closed;
    if (leaving.length > 0 || isNew || JSON.stringify(closed) !== wasClosed) await this.#replace();
    for (const live of leaving) {
      void live.close();
      this.#options.log.info('plugin left', { plugin: live.name });
    }
    await this.#subscriptions.tidy(this.#keepers());
  }

  /** Of folders that cannot be used, and of which nothing older is at work. */
  async #closedGates(): Promise<Gate[]> {
    const gates: Gate[] = [];
    for (const found of this.#found) {
      if (found.state !== 'bad' || this.#liveOf(found) !== undefined) continue;
      for (const gate of await closedGatesIn(found.folder)) gates.push(closedGate(gate, found.name, found.problem));
    }
    return gates;
  }

  /** Who was removed or turned off. Who only became unreadable stays as it was. */
  #leaving(): LivePlugin[] {
    const stays = (live: LivePlugin): boolean =>
      this.#found.some(({ state, name, folder }) =>
        state === 'bad' ? folder === live.plugin.folder : state === 'ready' && name === live.name,
      );
    return this.#all.filter((live) => !stays(live));
  }

  /** From one generation to the next without a moment in between. Never rejects. */
  async #replace(): Promise<void> {
    if (this.#stopped) return;
    this.#current = this.#form();
    this.#withheld.report(this.#current.withheld);
    for (const listener of this.#changed) listener();
    try {
      await this.#settle();
    } catch (error) {
      this.#options.log.error('a plugin could not be served', { error: MoiraiError.wrap(error) });
    }
  }

  #form(): Generation {
    const plugins = this.#all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return formGeneration(plugins, this.#options.reserved ?? {}, this.#closed);
  }

  /** Brings subscriptions and platforms in line with the generation; one after another. */
  #settle(): Promise<void> {
    const settled = this.#settling.then(async () => {
      if (this.#stopped) return;
      await this.#subscriptions.serve(this.#all.filter(({ events }) => events.length > 0));
      const { platforms } = this.#current;
      const unwanted = this.#platforms.filter((platform) => !platforms.includes(platform));
      this.#platforms = platforms;
      await Promise.all(unwanted.map((platform) => platform.halt()));
      await Promise.all(platforms.map((platform) => platform.settle()));
    });
    this.#settling = settled.catch(() => undefined); // Whoever asked is told; the next one begins anew.
    return settled;
  }

  async #receive(plugin: string, name: string, message: InboxMessage): Promise<void> {
    const platform = this.#current.platforms.find((each) => each.name === name && each.plugin === plugin);
    if (platform === undefined) throw new MoiraiError('bad_input', `the platform ${name} is not ${plugin}'s`);
    await platform.receive(message);
  }

  #liveOf(found: FoundPlugin): LivePlugin | undefined {
    if (found.state !== 'bad') return this.#live.get(found.name);
    return this.#all.find(({ plugin }) => plugin.folder === found.folder);
  }

  /** Whose place in the log stays: all that are there, but those that want to hear nothing any more. */
  #keepers(): string[] {
    const deaf = this.#all.filter(({ state, events }) => state === 'ready' && events.length === 0);
    const names = this.#found.map((found) => this.#liveOf(found)?.name ?? found.name);
    return names.filter((name) => !deaf.some((live) => live.name === name));
  }
}
