import { nameOf } from './rooms.ts';
import type { SourceView } from './world.ts';

/**
 * Sources that share a store list each other's gateways. What is counted in a store, or read from it, must be taken
 * from one of them only.
 */
export function groupByStore<S extends Pick<SourceView, 'gateways'>>(sources: readonly S[]): S[][] {
  const groups: { ids: Set<string>; members: S[] }[] = [];
  for (const source of sources) {
    const ids = new Set(source.gateways.map(({ id }) => id));
    const same = groups.filter((group) => [...ids].some((id) => group.ids.has(id)));
    for (const group of same) groups.splice(groups.indexOf(group), 1);
    const members = [...same.flatMap((group) => group.members), source];
    groups.push({ ids: new Set([...ids, ...same.flatMap((group) => [...group.ids])]), members });
  }
  return groups.map(({ members }) => members);
}

/** One of each store to ask: one that lives, if any does. */
export function oneOfEachStore(sources: readonly SourceView[]): SourceView[] {
  return groupByStore(sources).flatMap((group) => group.find(({ state }) => state === 'live') ?? group[0] ?? []);
}

/** The leak counter over all stores. */
export function countAll(sources: readonly SourceView[]) {
  const stores = oneOfEachStore(sources);
  return {
    open: stores.reduce((sum, { totals }) => sum + (totals?.open ?? 0), 0),
    unowned: stores.reduce((sum, { totals }) => sum + (totals?.unowned ?? 0), 0),
    /** Names of sources whose figures are missing or what was last known: the count may be wrong by theirs. */
    unheard: stores.filter(({ state, totals }) => state !== 'live' || totals === null).map(nameOf),
  };
}
