import type { Generation } from './generation.ts';
import type { LivePlugin } from './live-plugin.ts';
import type { FoundPlugin } from './plugin-kind.ts';

/** How a plugin is, for people. */
export interface PluginStatus {
  readonly name: string;
  readonly folder: string;
  /** `loading`: for the first time. `restarting`: its process died, and is started again. `bad`: it cannot be loaded. */
  readonly state: 'ready' | 'loading' | 'restarting' | 'disabled' | 'bad';
  /** What is wrong; with the state `ready` an older version goes on, for the newer one cannot be loaded. */
  readonly problem: string | null;
  readonly description: string | null;
  readonly version: string | null;
  /** The types of the log that it hears. */
  readonly events: readonly string[];
  readonly gates: readonly string[];
  readonly tools: readonly string[];
  readonly commands: readonly string[];
  readonly memoryProviders: readonly string[];
  readonly platforms: readonly string[];
  /** What it offers in vain, for somebody else has the name. */
  readonly withheld: readonly string[];
  readonly timeoutMs: number;
  readonly handled: number;
  readonly failed: number;
  readonly restarts: number;
  readonly lastError: string | null;
}

const UNTRIED = { handled: 0, failed: 0, restarts: 0, lastError: null };

export function statusOf(
  found: FoundPlugin,
  live: LivePlugin | undefined,
  generation: Generation,
  timeoutMs: number,
): PluginStatus {
  const { folder } = found;
  const name = live?.name ?? found.name;
  const manifest = found.state === 'bad' ? live?.plugin.manifest : found.manifest;
  const own = (offers: readonly { readonly plugin: string; readonly name: string }[]): string[] =>
    offers.filter(({ plugin }) => plugin === name).map((offer) => offer.name);
  return {
    ...{ name, folder, state: live?.state ?? found.state },
    problem: found.state === 'bad' ? `${found.name}: ${found.problem}` : (live?.problem ?? null),
    ...{ description: manifest?.description ?? null, version: manifest?.version ?? null },
    ...{ events: live?.offer.events ?? [], gates: live?.gates.map(({ gate }) => gate) ?? [] },
    ...{ tools: own(generation.tools), commands: own(generation.commands) },
    ...{ memoryProviders: own(generation.memoryProviders), platforms: own(generation.platforms) },
    withheld: generation.withheld.get(name) ?? [],
    timeoutMs: manifest?.timeoutMs ?? timeoutMs,
    ...(live?.record ?? UNTRIED),
  };
}
