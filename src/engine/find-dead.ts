import type { Store } from '../store/port.ts';
import { type HostFacts, isProvenDead } from './host.ts';

/**
 * The instances whose death is proven, or null when there is nothing to reap at all: no proof, no lease that ran out,
 * nothing left of the dead. Reads only, so that every command can afford to look.
 */
export async function findDead(
  store: Store,
  host: HostFacts,
  self: string | null,
  provenDead: typeof isProvenDead = isProvenDead,
): Promise<string[] | null> {
  const instances = await store.read('listInstances', {});
  const others = instances.filter((instance) => instance.id !== self);
  // An SQLite file is used from one machine only, whatever its containers are called.
  const oneMachine = store.engine === 'sqlite';
  const proven = others.filter((other) => other.state === 'up' && provenDead(other, host, oneMachine));
  const leftovers = others.some((other) => (other.state === 'up' ? other.expired : other.owns > 0));
  return proven.length > 0 || leftovers ? proven.map((instance) => instance.id) : null;
}
