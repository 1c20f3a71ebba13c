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

type Maker = (settings: MemorySettings, store: Store) => MemoryProvider;

const MAKERS: Readonly<Record<string, Maker>> = {
  files: () => new FilesMemory(),
  sqlite: (_, store) => new FactsMemory(store),
  mem0: (settings) => new Mem0Memory(settings),
  honcho: (settings) => new HonchoMemory(settings),
  supermemory: (settings) => new SupermemoryMemory(settings),
};

/**
 * The providers a configuration asks for: none, one of ours, or one that plugins brought. Throws `memory_provider` for a
 * name that nobody has, and when something is missing that it needs.
 */
export function createProviders(
  settings: MemorySettings,
  store: Store,
  fromPlugins: readonly MemoryProvider[] = [],
): MemoryProvider[] {
  const { provider: name } = settings;
  if (name === 'none') return [];
  const brought = fromPlugins.find((provider) => provider.name === name);
  if (brought !== undefined) return [brought];
  const make = Object.hasOwn(MAKERS, name) ? MAKERS[name] : undefined;
  if (make !== undefined) return [make(settings, store)];
  const names = ['none', ...Object.keys(MAKERS), ...fromPlugins.map((provider) => provider.name)];
  throw new MoiraiError('memory_provider', `no memory is called "${name}"; there are ${names.join(', ')}`);
}
