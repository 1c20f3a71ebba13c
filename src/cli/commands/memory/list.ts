import type { Command } from 'commander';
import { readConfig } from '../../configuration.ts';
import { type MemoryRow, memoryRows } from '../../memory-list.ts';
import { print, printJson, printLine, shorten, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description(
      'Lists who remembers: the memory of the configuration, the looking over of conversations, old memories.',
    )
    .addHelpText('after', NOTE)
    .action(() => list(command));
}

const NOTE = `
States: ready, new (no gateway has seen it yet), bad (no gateway will start with it), removed (not configured any more).
WAITING counts events that are not delivered yet, DEAD those that were given up; \`moirai hooks replay memory:NAME\` delivers
them again.`;

const HEADINGS = ['NAME', 'STATE', 'HEARS', 'WAITING', 'DEAD', 'TROUBLE'];
const TROUBLE_CHARS = 100;

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  const config = await readConfig(settings);
  await openStoreSession(settings, async ({ store }) => {
    const rows = await memoryRows(config, store);
    if (settings.json) return printJson({ data: rows, next: null });
    if (rows.length === 0) return printLine('No memory is configured.');
    return print(table(HEADINGS, rows.map(cellsOf)));
  });
}

function cellsOf({ name, state, events, lag, dead_letters, problem, last_error }: MemoryRow): string[] {
  const trouble = shorten(problem ?? last_error ?? '', TROUBLE_CHARS);
  return [name, state, shorten(events.join(',') || '-', 40), String(lag), String(dead_letters), trouble];
}
