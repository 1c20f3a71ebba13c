import type { Engine } from '../../engine/engine.ts';
import type { Reaped } from '../../store/transactions/reaping.ts';

const BATCH = 100;

/** Settles what the dead left and ends what is overdue. Returns what was done, as sentences. */
export async function fix(engine: Engine): Promise<string[]> {
  return [...(await reapOrphans(engine)), ...(await expire(engine))];
}

/** Also finds sessions whose owner has no row at all, which no lease and no proof of death leads to. */
async function reapOrphans(engine: Engine): Promise<string[]> {
  const done: string[] = [];
  for (let more = true; more; ) {
    const batch = await engine.store.write('reap', { context: engine.commandContext(), provenDead: [], limit: BATCH });
    const sentences = describeReaped(batch);
    done.push(...sentences);
    more = batch.more && sentences.length > 0;
  }
  return done;
}

/** What the reaper did, as sentences. */
export function describeReaped({ lost, reaped, interrupted, released }: Reaped): string[] {
  const count = (ids: readonly string[], what: string): string[] =>
    ids.length === 0 ? [] : [`${ids.length} ${what}: ${ids.join(', ')}`];
  return [
    ...count(lost, 'instances found dead'),
    ...count(reaped, 'sessions ended as reaped'),
    ...count(interrupted, 'turns cut, to be resumed'),
    ...count(released, 'sessions released'),
  ];
}

async function expire(engine: Engine): Promise<string[]> {
  const ended: string[] = [];
  for (let more = true; more; ) {
    const batch = await engine.expire('watcher');
    ended.push(...batch.ended);
    more = batch.more && batch.ended.length > 0;
  }
  return ended.length === 0 ? [] : [`${ended.length} overdue sessions ended: ${ended.join(', ')}`];
}
