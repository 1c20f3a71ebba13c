import { basename } from 'node:path';
import type { Command } from 'commander';
import { hookKind } from '../../../extensions/hooks/hook-kind.ts';
import { discover, folderOf } from '../../../extensions/host/extension-folder.ts';
import { readConfig } from '../../configuration.ts';
import { type HookRow, hookRows } from '../../hook-list.ts';
import { print, printable, printJson, printLine, shorten, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Lists the hooks of the home and the webhooks of the configuration, and how far they are.')
    .addHelpText('after', STATES)
    .action(() => list(command));
}

const STATES = `
States: ready, new (no gateway has seen it yet), disabled, bad (it cannot be used), removed.
WAITING counts events that are not delivered yet, DEAD those that were given up.`;

const HEADINGS = ['NAME', 'TYPE', 'STATE', 'EVENTS', 'WAITING', 'DEAD', 'TROUBLE'];
const TROUBLE_CHARS = 100;

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { hooks } = await readConfig(settings);
  const kind = hookKind(process.env.PATH ?? '');
  const found = await discover(settings.home, kind);
  await openStoreSession(settings, async ({ store }) => {
    const rows = hookRows(found, hooks.webhooks, await store.read('listSubscribers', {}));
    if (settings.json) return printJson({ data: rows, next: null });
    if (rows.length === 0)
      return printLine(`No hooks in ${printable(folderOf(settings.home, kind))}, and no webhooks.`);
    return print(table(HEADINGS, rows.map(cellsOf)));
  });
}

function cellsOf({ name, type, state, events, lag, dead_letters, problem, last_error, handler }: HookRow): string[] {
  const trouble = shorten(problem ?? last_error ?? '', TROUBLE_CHARS);
  const kind = handler === null ? type : basename(handler);
  return [name, kind, state, shorten(events.join(','), 40), String(lag), String(dead_letters), trouble];
}
