import { ExtensionRecord } from '../host/subscriptions.ts';
import type { LivePlugin } from './live-plugin.ts';
import { OFFER_KINDS, type OfferKind } from './names.ts';
import type { Claim } from './offers.ts';
import type { FoundPlugin } from './plugin-kind.ts';

type Figures = Readonly<Omit<ExtensionRecord, 'countFailure'>>;

/** How a plugin is, for people; with the names of what it offers. */
export interface PluginStatus extends Readonly<Record<OfferKind, readonly string[]>>, Figures {
  readonly name: string;
  /** `loading`: for the first time. `restarting`: its process died, and is started again. `bad`: it cannot be loaded. */
  readonly state: 'ready' | 'loading' | 'restarting' | 'disabled' | 'bad';
  /** What is wrong; with the state `ready` an older version goes on, for the newer one cannot be loaded. */
  readonly problem: string | null;
  readonly description: string | null;
  readonly version: string | null;
  /** The types of the log that it hears. */
  readonly events: readonly string[];
  readonly gates: readonly string[];
  /** What it offers in vain, for the gateway or another plugin has the name. */
  readonly withheld: readonly string[];
}

/** `claimsOf` lists what this plugin offers. */
export function statusOf(
  found: FoundPlugin,
  live: LivePlugin | undefined,
  claimsOf: (kind: OfferKind) => readonly Claim<OfferKind>[],
): PluginStatus {
  const name = live?.name ?? found.name;
  const manifest = found.state === 'bad' ? live?.plugin.manifest : found.manifest;
  const namesOf = (kind: OfferKind): string[] =>
    claimsOf(kind).flatMap(({ offer, problem }) => (problem === null ? offer.name : []));
  return {
    ...(Object.fromEntries(OFFER_KINDS.map((kind) => [kind, namesOf(kind)])) as Record<OfferKind, string[]>),
    name,
    state: live?.state ?? found.state,
    problem: found.state === 'bad' ? `${found.name}: ${found.problem}` : (live?.problem ?? null),
    description: manifest?.description ?? null,
    version: manifest?.version ?? null,
    events: live?.events ?? [],
    gates: live?.offers.gates.map(({ gate }) => gate) ?? [],
    withheld: OFFER_KINDS.flatMap(claimsOf).flatMap(({ problem }) => problem ?? []),
    ...(live?.record ?? new ExtensionRecord()),
  };
}
