import { MoiraiError } from '../errors/moirai-error.ts';
import type { Store } from '../store/port.ts';
import type { MemoryProvider } from './provider.ts';
import { FactsMemory } from './providers/facts.ts';
import { FilesMemory } from './providers/files.ts';
import { HonchoMemory } from './providers/honcho.ts';
import type { ServiceOptions } from './providers/json-client.ts';
import { Mem0Memory } from './providers/mem0.ts';
import { SupermemoryMemory } from './providers/supermemory.ts';

export interface MemorySettings extends ServiceOptions {
  /** `memory.provider` of the configuration. */
  readonly provider: string;
}

/** What is kept on this machine, or in the store: it needs nothing else. */
const OWN = new Map<string, (store: Store) => MemoryProvider>([
  ['files', () => new FilesMemory()],
  ['sqlite', (store) => new FactsMemory(store)],
]);

const SERVICES = new Map<string, (settings: ServiceOptions) => MemoryProvider>([
  ['mem0', (settings) => new Mem0Memory(settings)],
  ['honcho', (settings) => new HonchoMemory(settings)],
  ['supermemory', (settings) => new SupermemoryMemory(settings)],
]);

/**
 * The providers a configuration asks for: none, one of ours, or one that plugins brought. Throws `memory_provider` for a
 * name that no provider has, and when something is missing that it needs.
 */
export function createProviders(
  settings: MemorySettings,
  store: Store,
  fromPlugins: readonly MemoryProvider[] = [],
): MemoryProvider[] {
  const { provider: name } = settings;
  if (name === 'none') return [];
  const own = OWN.get(name)?.(store) ?? SERVICES.get(name)?.(settings);
  const provider = own ?? fromPlugins.find((brought) => brought.name === name);
  if (provider === undefined) throw unknownProvider(name, fromPlugins);
  return [provider];
}

/** What plugins cannot call theirs. */
export const OUR_PROVIDERS = [...OWN.keys(), ...SERVICES.keys()];

/** Throws as `createProviders` would, before there is a store. With `plugins` a name may be one of theirs. */
export function checkProvider(settings: MemorySettings, { plugins }: { plugins: boolean }): void {
  const { provider: name } = settings;
  const known = name === 'none' || OWN.has(name) || SERVICES.get(name)?.(settings) !== undefined;
  if (!known && !plugins) throw unknownProvider(name, []);
}

function unknownProvider(name: string, fromPlugins: readonly MemoryProvider[]): MoiraiError {
  const names = ['none', ...OUR_PROVIDERS, ...fromPlugins.map((provider) => provider.name)];
  return new MoiraiError('memory_provider', `no memory is called "${name}"; there are ${names.join(', ')}`);
}
