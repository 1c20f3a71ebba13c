import type { Command } from 'commander';
import { discover, folderOf } from '../../../extensions/host/extension-folder.ts';
import { subscriberOf } from '../../../extensions/host/subscriptions.ts';
import { type FoundPlugin, PLUGIN_KIND } from '../../../extensions/plugins/plugin-kind.ts';
import type { SubscriberStatus } from '../../../store/transactions/subscribers.ts';
import { print, printable, printJson, printLine, shorten, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Lists the plugins of the home: whether they can be loaded, and how far what they hear is.')
    .addHelpText('after', NOTE)
    .action(() => list(command));
}

const NOTE = `
States: ready, disabled, bad (it cannot be loaded, and why). A plugin that fails while it is loaded or at work is told of in
the log of the gateway, and by \`moirai hooks dead plugin:NAME\`; \`moirai hooks replay plugin:NAME\` delivers again.`;

const HEADINGS = ['NAME', 'STATE', 'HEARS', 'WAITING', 'DEAD', 'TROUBLE'];
const TROUBLE_CHARS = 100;

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const found = await discover(settings.home, PLUGIN_KIND);
    const subscribers = await store.read('listSubscribers', {});
    const rows = found.map((plugin) => viewOf(plugin, subscribers));
    if (settings.json) return printJson({ data: rows, next: null });
    if (rows.length === 0) return printLine(`No plugins in ${printable(folderOf(settings.home, PLUGIN_KIND))}.`);
    return print(table(HEADINGS, rows.map(cellsOf)));
  });
}

function viewOf(plugin: FoundPlugin, subscribers: readonly SubscriberStatus[]) {
  const subscriber = subscriberOf(PLUGIN_KIND.word, plugin.name);
  const status = subscribers.find(({ name }) => name === subscriber);
  return {
    ...{ name: plugin.name, state: plugin.state, folder: plugin.folder, subscriber },
    description: plugin.state === 'bad' ? null : plugin.manifest.description,
    problem: plugin.state === 'bad' ? plugin.problem : null,
    events: status?.patterns ?? [],
    lag: status?.lag ?? 0,
    dead_letters: status?.deadLetters ?? 0,
    last_error: status?.lastError ?? null,
  };
}

function cellsOf({ name, state, events, lag, dead_letters, problem, last_error }: ReturnType<typeof viewOf>): string[] {
  const trouble = shorten(problem ?? last_error ?? '', TROUBLE_CHARS);
  return [name, state, shorten(events.join(',') || '-', 40), String(lag), String(dead_letters), trouble];
}
