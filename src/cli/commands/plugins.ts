import type { Command } from 'commander';
import { discover, folderOf } from '../../extensions/host/extension-folder.ts';
import { subscriberOf } from '../../extensions/host/subscriptions.ts';
import { type FoundPlugin, PLUGIN_KIND } from '../../extensions/plugins/plugin-kind.ts';
import type { SubscriberStatus } from '../../store/transactions/subscribers.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { printable, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';
import { eventsCell, SUBSCRIBER_HEADINGS, subscriberCells } from '../subscriber-text.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('what there is, and how far it is')
    .description('Lists the plugins of the home: whether they can be loaded, and how far what they hear is.')
    .addHelpText('after', NOTE)
    .action(inStore(list));
}

const NOTE = `
States: ready, disabled, bad (it cannot be loaded, and why). A plugin that fails while it is loaded or at work is told of in
the log of the gateway, and by \`moirai hooks dead plugin:NAME\`; \`moirai hooks replay plugin:NAME\` delivers again.`;

async function list({ store, settings }: StoreSession): Promise<Answer> {
  const found = await discover(settings.home, PLUGIN_KIND);
  const subscribers = await store.read('listSubscribers', {});
  const data = found.map((plugin) => viewOf(plugin, subscribers));
  const rows = data.map((row) => [row.name, row.state, eventsCell(row.events) || '-', ...subscriberCells(row)]);
  const text = table(['NAME', 'STATE', 'HEARS', ...SUBSCRIBER_HEADINGS], rows);
  return listing({ data, text, none: `No plugins in ${printable(folderOf(settings.home, PLUGIN_KIND))}.` });
}

function viewOf(plugin: FoundPlugin, subscribers: readonly SubscriberStatus[]) {
  const subscriber = subscriberOf(PLUGIN_KIND.word, plugin.name);
  const status = subscribers.find(({ name }) => name === subscriber);
  return {
    name: plugin.name,
    state: plugin.state,
    folder: plugin.folder,
    subscriber,
    description: plugin.state === 'bad' ? null : plugin.manifest.description,
    problem: plugin.state === 'bad' ? plugin.problem : null,
    events: status?.patterns ?? [],
    lag: status?.lag ?? 0,
    dead_letters: status?.deadLetters ?? 0,
    last_error: status?.lastError ?? null,
  };
}
