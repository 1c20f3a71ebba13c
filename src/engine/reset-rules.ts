import { setImmediate as otherWork, setTimeout as sleep } from 'node:timers/promises';
import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { RuledBatch } from '../store/transactions/reset-rules.ts';
import type { Engine } from './engine.ts';

const BATCH = 200;
/** Those that were busy are asked for again after this. */
const BUSY_MS = 50;
const SETTING = 'reset_rules';

/**
 * Lets the reset rules reach every open session: those that they give another deadline, or none, get it now, not with the
 * next message. In batches, with other work in between. Rules that were applied to this store before are known by a mark
 * in it, so that a start under the same rules costs one read. Returns how many sessions changed.
 */
export async function applyResetRules(engine: Engine, rules: ResetRules): Promise<number> {
  const { store } = engine;
  const mark = markOf(rules);
  if ((await store.read('findSetting', { name: SETTING })) === mark) return 0;
  // First: a walk that is interrupted leaves some sessions under these rules and some under those before.
  await store.write('keepSetting', { name: SETTING, value: '' });
  let changed = 0;
  let busy: string[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const context = engine.commandContext();
    const batch: RuledBatch = await store.write('applyRules', { context, after, limit: BATCH });
    changed += batch.changed;
    busy.push(...batch.busy);
    after = batch.next;
    await otherWork();
  }
  while (busy.length > 0) {
    await sleep(BUSY_MS);
    const batch = await store.write('applyRulesTo', { context: engine.commandContext(), ids: busy.slice(0, BATCH) });
    changed += batch.changed;
    busy = [...busy.slice(BATCH), ...batch.busy];
  }
  await store.write('keepSetting', { name: SETTING, value: mark });
  return changed;
}

/** What of the rules a deadline depends on. */
function markOf({ reset, resetByType, resetByPlatform, resumeWindowMs }: ResetRules): string {
  return JSON.stringify([reset, resetByType, resetByPlatform, resumeWindowMs]);
}
