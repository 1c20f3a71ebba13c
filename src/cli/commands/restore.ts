import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { describeThisProcess } from '../../engine/host.ts';
import { isoTime } from '../../engine/views.ts';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { inspectBackup } from '../../store/backup/backup-file.ts';
import { restoreBackup } from '../../store/backup/restore.ts';
import { placeOf } from '../../store/open-store.ts';
import { type Answer, answer } from '../command.ts';
import { storeSettingsOf } from '../configuration.ts';
import { becomeGateway } from '../gateway/holder.ts';
import { packageVersion } from '../package-version.ts';
import { facts } from '../print.ts';
import { shownProgress } from '../progress.ts';
import { makeHome, type Settings } from '../settings.ts';
import { StoreSession } from '../store-session.ts';

export function define(command: Command): void {
  command
    .description('Puts a backup in the place of the store. No gateway may be running.')
    .argument('<file>', 'what `moirai backup` has written, of either engine')
    .option('--force', 'also when the store has sessions; it is kept aside')
    .action(answer(restore));
}

async function restore(settings: Settings, path: string, { force = false }: { force?: boolean }): Promise<Answer> {
  makeHome(settings.home);
  const file = resolve(path);
  const { url } = await storeSettingsOf(settings);
  const { engine, place } = placeOf(url, settings.home);
  // What cannot be restored is told before the store that is there is even opened.
  inspectBackup(file);
  // Nobody becomes the gateway of this home while its store is being replaced.
  const lock = await becomeGateway(settings.home, {
    ...describeThisProcess(),
    version: packageVersion(),
    startedAt: isoTime(Date.now()),
    startedBy: 'person',
    drainTimeoutMs: 0,
    url: null,
    instance: null,
  });
  const progress = shownProgress('restore', settings.json);
  try {
    if (engine === 'postgres' || existsSync(place)) await assertReplaceable(settings, force);
    const now = Date.now();
    const suffix = isoTime(now).replace(/\D/g, '').slice(0, 14);
    const result = await restoreBackup({ engine, place, file, suffix, now, progress: progress.show });
    const { sessions, kept } = result;
    const takenAt = result.takenAt === null ? null : isoTime(result.takenAt);
    return {
      json: { file, sessions, taken_at: takenAt, engine, kept },
      text: facts({ restored: file, 'taken at': takenAt, sessions, 'old store': kept }),
    };
  } finally {
    progress.end();
    lock.release();
  }
}

/** Throws `store_in_use` while a process takes part in the store, and `store_not_empty` for one that has sessions. */
async function assertReplaceable(settings: Settings, force: boolean): Promise<void> {
  try {
    await examine(settings, force);
  } catch (thrown) {
    // It cannot be used, so nobody uses it. It is kept aside all the same.
    if (!force || !hasCode(thrown, 'store_corrupt', 'store_not_database', 'store_newer')) throw thrown;
  }
}

async function examine(settings: Settings, force: boolean): Promise<void> {
  const here = await StoreSession.begin(settings);
  try {
    await here.settle();
    const instances = await here.store.read('listInstances', {});
    const live = instances.find(({ state, expired }) => state === 'up' && !expired);
    if (live !== undefined) {
      throw new MoiraiError('store_in_use', `process ${live.pid} of ${live.host} uses the store`);
    }
    const { total } = await here.store.read('stats', {});
    if (total > 0 && !force) throw new MoiraiError('store_not_empty', `the store has ${total} sessions`);
  } finally {
    await here.end();
  }
}
