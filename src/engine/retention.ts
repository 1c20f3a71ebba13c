import { SESSION_KINDS } from '../lifecycle/states.ts';
import type { PruneRule } from '../store/transactions/deletion.ts';

/** What `sessions.retention` says, as rules for those kinds that are not kept for good. */
export function pruneRules(retention: Readonly<Record<string, number | null>>): PruneRule[] {
  return SESSION_KINDS.flatMap((kind) => {
    const olderThanMs = retention[kind] ?? null;
    return olderThanMs === null ? [] : [{ kind, olderThanMs }];
  });
}
