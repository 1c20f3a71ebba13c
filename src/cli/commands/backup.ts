import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime } from '../../engine/views.ts';
import { createBackup } from '../../store/backup/backup.ts';
import { placeOf } from '../../store/open-store.ts';
import { type Answer, inStore } from '../command.ts';
import { facts } from '../print.ts';
import { shownProgress } from '../progress.ts';
import type { StoreSession } from '../store-session.ts';

export function define(command: Command): void {
  command
    .description('Copies the store as it is now into one file. A gateway may go on meanwhile.')
    .argument('<file>', 'where the backup is to be')
    .option('--force', 'replace a file that is there')
    .addHelpText('after', '\nThe file can be restored into either engine with `moirai restore`.')
    .action(inStore(backup));
}

async function backup(here: StoreSession, path: string, { force = false }: { force?: boolean }): Promise<Answer> {
  const { store, settings, configured } = here;
  const at = Date.now();
  const progress = shownProgress('backup', settings.json);
  const { file, bytes, sessions } = await createBackup({
    ...placeOf(configured.url, settings.home),
    file: resolve(path),
    replace: force,
    now: at,
    progress: progress.show,
  }).finally(progress.end);
  await store.write('recordBackup', { at, file, bytes });
  const took = Date.now() - at;
  return {
    json: { file, bytes, sessions, store: store.location, engine: store.engine, at: isoTime(at), took_ms: took },
    text: facts({ file, bytes, sessions, store: store.location, took: `${took} ms` }),
  };
}
