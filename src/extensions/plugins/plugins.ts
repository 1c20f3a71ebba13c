import { MoiraiError } from '../../errors/moirai-error.ts';
import { hookEnvironment } from '../host/environment.ts';
import { ExtensionFolder, faultReporter } from '../host/extension-folder.ts';
import { type ExtensionOptions, Subscriptions } from '../host/subscriptions.ts';
import type {
  DispatchQuestion,
  GateName,
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
import { LivePlugin } from './live-plugin.ts';
import { awaitedMemory, type PluginMemory } from './memory-offer.ts';
import { OFFER_KINDS, type OfferKind } from './names.ts';
import {
  type Claim,
  claimsOf,
  type Offers,
  type PluginCommand,
  type PluginTool,
  type ReservedNames,
} from './offers.ts';
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
const LONGEST_RESULT = 32_000;

/**
 * The plugins in `<home>/plugins`, each in a process of its own: what they offer, and what they say when they are asked.
 * Where there are none, nothing of this costs anything. After a change of a plugin the new process is loaded first, and
 * then everything that the plugin offers is replaced at once.
 */
export class Plugins {
  readonly #options: PluginsOptions;
  readonly #deps: PluginDeps;
  readonly #live = new Map<string, LivePlugin>();
  readonly #subscriptions: Subscriptions;
  readonly #folder: ExtensionFolder<PluginFiles>;
  /** Of what is offered in vain. */
  readonly #report: ReturnType<typeof faultReporter>;
  readonly #listeners: (() => void)[] = [];
  #found: readonly FoundPlugin[] = [];
  #closed: readonly Gate[] = [];
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
      changed: () => this.#onChanged(),
      settle: () => this.#settle(),
    };
    this.#subscriptions = new Subscriptions(PLUGIN_KIND.word, options);
    this.#report = faultReporter(PLUGIN_KIND.word, log);
    this.#folder = new ExtensionFolder(PLUGIN_KIND, options, (found) => this.#apply(found));
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
    const statuses = this.#found.map((found) => {
      const live = this.#liveOf(found);
      return statusOf(found, live, (kind) => this.#claims(kind).filter(({ offer }) => offer.plugin === live?.name));
    });
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
    return this.#granted('tools');
  }

  commands(): readonly PluginCommand[] {
    return this.#granted('commands');
  }

  memoryProviders(): readonly PluginMemory[] {
    return this.#granted('memoryProviders');
  }

  /** The memory of this name, there as soon as a plugin that brings it is loaded; null where there is no plugin at all. */
  memoryProvider(name: string): PluginMemoryProvider | null {
    const find = (): PluginMemory | undefined => this.memoryProviders().find((provider) => provider.name === name);
    return this.#found.length === 0 ? null : awaitedMemory(name, find, () => this.#firstLoads());
  }

  platforms(): readonly PluginPlatform[] {
    return this.#granted('platforms');
  }

  /** Calls when there may be other tools, commands, providers or platforms than before. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
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

  /** Tells of a tool that was run. Nothing waits for it. */
  toolDone(call: ToolQuestion, outcome: ToolOutcome): void {
    const done = { ...call, ...outcome, result: outcome.result.slice(0, LONGEST_RESULT) };
    for (const live of this.#live.values()) live.tellToolDone(done);
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

  /** In the order of their names. */
  get #all(): LivePlugin[] {
    return [...this.#live.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  #claims<Kind extends OfferKind>(kind: Kind): Claim<Kind>[] {
    return claimsOf(kind, this.#all, this.#options.reserved ?? {});
  }

  #granted<Kind extends OfferKind>(kind: Kind): Offers[Kind][number][] {
    return this.#claims(kind).flatMap(({ offer, problem }) => (problem === null ? [offer] : []));
  }

  /** The gates of this name, in the order of their plugins. Waits for a plugin whose gate is closed until it is loaded. */
  async #gates(name: GateName): Promise<readonly Gate[]> {
    await this.loaded();
    const closed = this.#all.filter(({ offers }) =>
      offers.gates.some(({ gate, onFailure }) => gate === name && onFailure === 'closed'),
    );
    await Promise.all(closed.map(({ firstLoad }) => firstLoad));
    const gates: Gate[] = [...this.#all.flatMap(({ offers }) => offers.gates), ...this.#closed];
    const byPlugin = (a: Gate, b: Gate): number => (a.plugin < b.plugin ? -1 : a.plugin > b.plugin ? 1 : 0);
    return gates.filter(({ gate }) => gate === name).toSorted(byPlugin);
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
      const live = this.#live.get(plugin.name) ?? new LivePlugin(plugin, this.#deps);
      isNew ||= live.state === 'loading' || live.state === 'bad';
      this.#live.set(plugin.name, live);
      if (all || !live.knows(plugin)) live.use(plugin);
    }
    const wasClosed = JSON.stringify(this.#closed);
    this.#closed = closed;
    if (leaving.length > 0 || isNew || JSON.stringify(closed) !== wasClosed) await this.#onChanged();
    for (const live of leaving) {
      void live.close();
      this.#options.log.info('plugin left', { plugin: live.name });
    }
    await this.#subscriptions.tidy(this.#keepers());
  }

  /** Of folders that cannot be used, and of which nothing older is at work. */
  async #closedGates(): Promise<Gate[]> {
    const gates = this.#found.map(async (found) => {
      if (found.state !== 'bad' || this.#liveOf(found) !== undefined) return [];
      return (await closedGatesIn(found.folder)).map((gate) => closedGate(gate, found.name, found.problem));
    });
    return (await Promise.all(gates)).flat();
  }

  /** Plugins that were removed or turned off. One whose files only became unreadable stays as it was. */
  #leaving(): LivePlugin[] {
    const stays = (live: LivePlugin): boolean =>
      this.#found.some(({ state, name, folder }) =>
        state === 'bad' ? folder === live.plugin.folder : state === 'ready' && name === live.name,
      );
    return this.#all.filter((live) => !stays(live));
  }

  /** Says that something else is offered than before, and acts on it. Never rejects. */
  async #onChanged(): Promise<void> {
    if (this.#stopped) return;
    const claims: readonly Claim<OfferKind>[] = OFFER_KINDS.flatMap((kind) => this.#claims(kind));
    this.#report(claims.flatMap(({ offer, problem }) => (problem === null ? [] : { name: offer.plugin, problem })));
    for (const listener of this.#listeners) listener();
    try {
      await this.#settle();
    } catch (error) {
      this.#options.log.error('a plugin could not be served', { error: MoiraiError.wrap(error) });
    }
  }

  /** Brings subscriptions and platforms in line with what is offered; one after another. */
  #settle(): Promise<void> {
    const settled = this.#settling.then(async () => {
      if (this.#stopped) return;
      await this.#subscriptions.serve(this.#all.filter(({ events }) => events.length > 0));
      const platforms = this.platforms();
      const unwanted = this.#platforms.filter((platform) => !platforms.includes(platform));
      this.#platforms = platforms;
      await Promise.all(unwanted.map((platform) => platform.halt()));
      await Promise.all(platforms.map((platform) => platform.settle()));
    });
    this.#settling = settled.catch(() => undefined); // The caller gets the error; the next call begins anew.
    return settled;
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
