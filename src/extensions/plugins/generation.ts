import type { GateName } from './api.ts';
import { type Gate, PluginGate } from './gates.ts';
import type { LivePlugin } from './live-plugin.ts';
import { type PluginMemory, pluginMemory } from './memory-offer.ts';
import { GATE_NAMES } from './names.ts';
import { type PluginCommand, type PluginTool, pluginCommand, pluginTool } from './offers.ts';
import type { PluginPlatform } from './plugin-platform.ts';
import type { PluginDeps } from './plugin-process.ts';
import type { Offer, ToolOffer } from './protocol.ts';

/** Names that are not for plugins, for the gateway has them itself. */
export interface ReservedNames {
  readonly tools?: readonly string[];
  readonly commands?: readonly string[];
  readonly memoryProviders?: readonly string[];
  readonly platforms?: readonly string[];
}

type Kind = keyof ReservedNames;

/** Everything that all plugins offer at one moment. It is never changed, but replaced as a whole. */
export interface Generation {
  readonly gates: Readonly<Record<GateName, readonly Gate[]>>;
  readonly tools: readonly PluginTool[];
  /** By the name of a tool: what its plugin has to be asked about its arguments. */
  readonly toolOffers: ReadonlyMap<string, { readonly live: LivePlugin; readonly offer: ToolOffer }>;
  readonly commands: readonly PluginCommand[];
  readonly memoryProviders: readonly PluginMemory[];
  readonly platforms: readonly PluginPlatform[];
  readonly hearTools: readonly LivePlugin[];
  /** By plugin: what it offers in vain, for somebody else has the name. */
  readonly withheld: ReadonlyMap<string, readonly string[]>;
}

/** Brings the offers of plugins together, in the order of the plugins' names: of two with one name the first counts. */
export function formGeneration(
  plugins: readonly LivePlugin[],
  deps: Pick<PluginDeps, 'timers' | 'log'>,
  reserved: ReservedNames,
  closed: readonly Gate[],
): Generation {
  const withheld = new Map<string, string[]>();
  const claim = claimant(reserved, withheld);
  const offersOf = <K extends Kind>(kind: K) =>
    plugins.flatMap((live) => {
      const offers: readonly Offer[K][number][] = live.offer[kind];
      return offers.filter(({ name }) => claim(kind, name, live)).map((offer) => ({ live, offer }));
    });
  const tools = offersOf('tools');
  return {
    gates: gatesOf(plugins, deps, closed),
    tools: tools.map(({ live, offer }) => pluginTool(live, offer)),
    toolOffers: new Map(tools.map((found) => [found.offer.name, found])),
    commands: offersOf('commands').map(({ live, offer }) => pluginCommand(live, offer)),
    memoryProviders: offersOf('memoryProviders').map(({ live, offer }) => pluginMemory(live, offer)),
    platforms: offersOf('platforms').map(({ live, offer }) => live.platform(offer)),
    hearTools: plugins.filter(({ offer }) => offer.hearsTools),
    withheld,
  };
}

const WORDS: Readonly<Record<Kind, string>> = {
  ...{ tools: 'tool', commands: 'command', memoryProviders: 'memory provider', platforms: 'platform' },
};

function claimant(reserved: ReservedNames, withheld: Map<string, string[]>) {
  const owners = new Map<string, string>();
  for (const kind of Object.keys(WORDS) as Kind[]) {
    for (const name of reserved[kind] ?? []) owners.set(`${kind} ${name}`, 'the gateway');
  }
  return (kind: Kind, name: string, live: LivePlugin): boolean => {
    const owner = owners.get(`${kind} ${name}`);
    if (owner === undefined) owners.set(`${kind} ${name}`, live.name);
    else withheld.set(live.name, [...(withheld.get(live.name) ?? []), `the ${WORDS[kind]} "${name}" is ${owner}'s`]);
    return owner === undefined;
  };
}

/** A gate keeps what is known of it for as long as its process lives, whatever becomes of the other plugins. */
const known = new WeakMap<object, readonly PluginGate[]>();

function gatesOf(
  plugins: readonly LivePlugin[],
  deps: Pick<PluginDeps, 'timers' | 'log'>,
  closed: readonly Gate[],
): Generation['gates'] {
  const own = plugins.flatMap((live) => {
    const { gates } = live;
    const indexOf = (at: number): number => gates.slice(0, at).filter(({ gate }) => gate === gates[at]?.gate).length;
    const made = known.get(gates) ?? gates.map((gate, at) => new PluginGate(live, indexOf(at), gate, deps));
    known.set(gates, made);
    return made;
  });
  const all = [...own, ...closed].toSorted((a, b) => (a.plugin < b.plugin ? -1 : a.plugin > b.plugin ? 1 : 0));
  const entries = GATE_NAMES.map((name) => [name, all.filter(({ gate }) => gate === name)]);
  return Object.fromEntries(entries) as Generation['gates'];
}
