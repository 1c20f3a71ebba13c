import type { Command } from 'commander';
import { discover, folderOf } from '../../extensions/host/extension-folder.ts';
import { subscriberOf } from '../../extensions/host/subscriptions.ts';
import { type FoundPlugin, PLUGIN_KIND } from '../../extensions/plugins/plugin-kind.ts';
import type { SubscriberStatus } from '../../store/transactions/subscribers.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { GatewayClient } from '../gateway/client.ts';
import { findGateway } from '../gateway/holder.ts';
import { printable, table } from '../print.ts';
import type { Settings } from '../settings.ts';
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
States: ready, disabled, bad (it cannot be loaded, and why), refused (the gateway that runs did not load it, and why). Without a
running gateway only the files are looked at. A plugin that fails while it is loaded or at work is told of in
the log of the gateway, and by \`moirai hooks dead plugin:NAME\`; \`moirai hooks replay plugin:NAME\` delivers again.`;

async function list({ store, settings }: StoreSession): Promise<Answer> {
  const found = await discover(settings.home, PLUGIN_KIND);
  const subscribers = await store.read('listSubscribers', {});
  const refusals = await refusalsOf(settings);
  const data = found.map((plugin) => viewOf(plugin, subscribers, refusals.get(plugin.name) ?? null));
  const rows = data.map((row) => [row.name, row.state, eventsCell(row.events) || '-', ...subscriberCells(row)]);
  const problems = data.flatMap(({ name, problem }) =>
    problem === null ? [] : [`${printable(`${name}: ${problem}`)}\n`],
  );
  const text = `${table(['NAME', 'STATE', 'HEARS', ...SUBSCRIBER_HEADINGS], rows)}${problems.join('')}`;
  return listing({ data, text, none: `No plugins in ${printable(folderOf(settings.home, PLUGIN_KIND))}.` });
}

/** Why the gateway that runs did not load plugins, by their names. */
async function refusalsOf(settings: Settings): Promise<ReadonlyMap<string, string>> {
  const holder = findGateway(settings.home);
  if (holder === null) return new Map();
  try {
    const { checks } = await (await GatewayClient.to(holder, settings)).readiness();
    const refused = Object.entries(checks).filter(([name]) => name.startsWith(PREFIX));
    return new Map(refused.map(([name, { detail }]) => [name.slice(PREFIX.length), detail]));
  } catch {
    return new Map(); // It does not answer: what the files say is known all the same.
  }
}

const PREFIX = 'plugin:';

function viewOf(plugin: FoundPlugin, subscribers: readonly SubscriberStatus[], refusal: string | null) {
  const subscriber = subscriberOf(PLUGIN_KIND.word, plugin.name);
  const status = subscribers.find(({ name }) => name === subscriber);
  return {
    name: plugin.name,
    state: plugin.state === 'ready' && refusal !== null ? 'refused' : plugin.state,
    folder: plugin.folder,
    subscriber,
    description: plugin.state === 'bad' ? null : plugin.manifest.description,
    problem: plugin.state === 'bad' ? plugin.problem : refusal,
    events: status?.patterns ?? [],
    lag: status?.lag ?? 0,
    dead_letters: status?.deadLetters ?? 0,
    last_error: status?.lastError ?? null,
  };
}
