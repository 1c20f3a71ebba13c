import type { GateName } from './api.ts';
import type { Gate } from './gates.ts';
import type { LivePlugin } from './live-plugin.ts';
import { type PluginMemory, pluginMemory } from './memory-offer.ts';
import { GATE_NAMES, OFFER_WORDS, type OfferKind } from './names.ts';
import type { Offer } from './offer.ts';
import { type PluginCommand, type PluginTool, pluginCommand, pluginTool } from './offers.ts';
import type { PluginPlatform } from './plugin-platform.ts';

/** Names that are not for plugins, for the gateway has them itself. */
export type ReservedNames = { readonly [Kind in OfferKind]?: readonly string[] };

/** Everything that all plugins offer at one moment. It is never changed, but replaced as a whole. */
export interface Generation {
  readonly gates: Readonly<Record<GateName, readonly Gate[]>>;
  readonly tools: readonly PluginTool[];
  readonly commands: readonly PluginCommand[];
  readonly memoryProviders: readonly PluginMemory[];
  readonly platforms: readonly PluginPlatform[];
  readonly hearTools: readonly LivePlugin[];
  /** What plugins offer in vain, for somebody else has the name. */
  readonly withheld: readonly { readonly name: string; readonly problem: string }[];
}

/** Brings the offers of plugins together, in the order of the plugins' names: of two with one name the first counts. */
export function formGeneration(
  plugins: readonly LivePlugin[],
  reserved: ReservedNames,
  closed: readonly Gate[],
): Generation {
  const withheld: { name: string; problem: string }[] = [];
  const offersOf = <Kind extends OfferKind, Made>(
    kind: Kind,
    make: (live: LivePlugin, offer: Offer[Kind][number]) => Made,
  ): Made[] => {
    const owners = new Map(reserved[kind]?.map((name) => [name, 'the gateway']));
    const made: Made[] = [];
    for (const live of plugins) {
      const offers: readonly Offer[Kind][number][] = live.offer[kind];
      for (const offer of offers) {
        const owner = owners.get(offer.name);
        const problem = `the ${OFFER_WORDS[kind]} "${offer.name}" is ${owner}'s`;
        if (owner !== undefined) withheld.push({ name: live.name, problem });
        else made.push(make(live, offer));
        owners.set(offer.name, owner ?? live.name);
      }
    }
    return made;
  };
  return {
    gates: gatesOf(plugins, closed),
    tools: offersOf('tools', pluginTool),
    commands: offersOf('commands', pluginCommand),
    memoryProviders: offersOf('memoryProviders', pluginMemory),
    platforms: offersOf('platforms', (live, offer) => live.platform(offer)),
    hearTools: plugins.filter(({ offer }) => offer.hearsTools),
    withheld,
  };
}

function gatesOf(plugins: readonly LivePlugin[], closed: readonly Gate[]): Generation['gates'] {
  const own = plugins.flatMap(({ gates }) => gates);
  const all = [...own, ...closed].toSorted((a, b) => (a.plugin < b.plugin ? -1 : a.plugin > b.plugin ? 1 : 0));
  const entries = GATE_NAMES.map((name) => [name, all.filter(({ gate }) => gate === name)]);
  return Object.fromEntries(entries) as Generation['gates'];
}
