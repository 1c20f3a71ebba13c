import { basename } from 'node:path';
import type { Command } from 'commander';
import type { WebhookConfig } from '../../config/config.ts';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { type FoundHook, hookKind } from '../../extensions/hooks/hook-kind.ts';
import { discover, folderOf } from '../../extensions/host/extension-folder.ts';
import type { DeadLetter, SubscriberStatus } from '../../store/transactions/subscribers.ts';
import { type Answer, answer, inStore, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { findSubscriber } from '../hook-names.ts';
import { DEFAULT_PAGE, LIMIT, whole } from '../options.ts';
import { printable, relativeTime, shorten, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';
import { eventsCell, figuresOf, SUBSCRIBER_HEADINGS, subscriberCells } from '../subscriber-text.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('what there is, and how far it is')
    .description('Lists the hooks of the home and the webhooks of the configuration, and how far they are.')
    .addHelpText('after', STATES)
    .action(inStore(list));
  group
    .command('test')
    .summary('run one once')
    .description('Runs a hook once with a sample event, or sends one to a webhook, and shows what came of it.')
    .argument('<name>', 'the hook or webhook')
    .argument('<event>', 'the type of the event, such as session:end')
    .option('--json-file <file>', 'an object whose fields replace those of the sample')
    .addHelpText('after', TEST_NOTE)
    .action(
      answer(async (settings, name: string, type: string, options: { jsonFile?: string }) => {
        const { testHook } = await import('../test-hook.ts');
        return testHook(settings, name, type, options.jsonFile);
      }),
    );
  group
    .command('replay')
    .summary('deliver events once more')
    .description('Delivers events to a hook or webhook once more, in order per conversation.')
    .argument('<name>', 'the hook or webhook; hook:NAME or webhook:NAME where both have the name; memory:NAME')
    .option('--from <seq>', 'everything from this number of `moirai events` on', whole('--from', 0))
    .option('--dead', 'its dead letters (so it is without --from)')
    .addHelpText('after', '\nThey are delivered by the gateway: at once if it runs, else when it starts.')
    .action(inStore(replay));
  group
    .command('dead')
    .summary('what was given up')
    .description('Lists dead letters: events that a hook or webhook failed to take so often that they were given up.')
    .argument('[name]', 'only those of one hook or webhook')
    .option(...LIMIT)
    .addHelpText('after', '\n`moirai hooks replay NAME --dead` delivers them again.')
    .action(inStore(dead));
}

const STATES = `
States: ready, new (no gateway has seen it yet), disabled, bad (it cannot be used), removed.
WAITING counts events that are not delivered yet, DEAD those that were given up.`;

const TEST_NOTE = `
The event is sent whether the hook listens to it or not; nothing is recorded. Exit codes: 0 it took the event, 1 it did not.`;

async function list({ store, settings }: StoreSession): Promise<Answer> {
  const { hooks } = await readConfig(settings);
  const kind = hookKind(process.env.PATH ?? '');
  const found = await discover(settings.home, kind);
  const data = hookRows(found, hooks.webhooks, await store.read('listSubscribers', {}));
  const rows = data.map((row) => {
    const type = row.handler === null ? row.type : basename(row.handler);
    return [row.name, type, row.state, eventsCell(row.events), ...subscriberCells(row)];
  });
  const text = table(['NAME', 'TYPE', 'STATE', 'EVENTS', ...SUBSCRIBER_HEADINGS], rows);
  return listing({ data, text, none: `No hooks in ${printable(folderOf(settings.home, kind))}, and no webhooks.` });
}

/** All hooks and webhooks that there are, and what is left in the store of those whose folder or entry is gone. */
function hookRows(
  found: readonly FoundHook[],
  webhooks: readonly WebhookConfig[],
  subscribers: readonly SubscriberStatus[],
): HookRow[] {
  const statusOf = (subscriber: string) => subscribers.find(({ name }) => name === subscriber);
  const rows = [
    ...found.map((hook) => {
      const status = statusOf(`hook:${hook.name}`);
      if (hook.state === 'bad') return rowOf(`hook:${hook.name}`, status, { state: 'bad', problem: hook.problem });
      const state = hook.state === 'ready' && status === undefined ? 'new' : hook.state;
      const { description, events } = hook.manifest;
      return rowOf(`hook:${hook.name}`, status, { state, description, events, handler: hook.handler.file });
    }),
    ...webhooks.map(({ name, events }) => {
      const status = statusOf(`webhook:${name}`);
      return rowOf(`webhook:${name}`, status, { state: status === undefined ? 'new' : 'ready', events });
    }),
  ];
  const listed = new Set(rows.map(({ subscriber }) => subscriber));
  const left = subscribers.filter(({ name }) => /^(web)?hook:/.test(name) && !listed.has(name));
  return [...rows, ...left.map((status) => rowOf(status.name, status, { state: 'removed', events: status.patterns }))];
}

type HookRow = ReturnType<typeof rowOf>;

/** What the folder or the configuration says of a hook or webhook, and how it stands in the store. */
function rowOf(
  subscriber: string,
  status: SubscriberStatus | undefined,
  facts: {
    readonly state: 'ready' | 'new' | 'disabled' | 'bad' | 'removed';
    readonly problem?: string;
    readonly description?: string | null;
    readonly events?: readonly string[];
    readonly handler?: string;
  },
) {
  const [kind, name = ''] = subscriber.split(/:(.*)/s);
  const { state, problem = null, description = null, events = [], handler = null } = facts;
  const type = kind === 'hook' ? 'file' : 'webhook';
  return { name, type, subscriber, state, problem, description, events, handler, ...figuresOf(status) };
}

async function replay(
  { store }: StoreSession,
  name: string,
  { from, dead }: { from?: number; dead?: boolean },
): Promise<Answer> {
  if (from !== undefined && dead) throw new MoiraiError('bad_input', 'give either --from or --dead, not both');
  const subscriber = await findSubscriber(store, name);
  const { events } = await store.write('replay', { subscriber, fromSeq: from ?? null });
  // From a number on it is not known which of them the subscriber listens to.
  const count = from === undefined ? `${events} dead letters go` : `what it listens to of ${events} events goes`;
  return { json: { subscriber, events }, text: `${subscriber}: ${count} out again` };
}

async function dead(
  { store }: StoreSession,
  name: string | undefined,
  { limit = DEFAULT_PAGE }: { limit?: number },
): Promise<Answer> {
  const subscriber = name === undefined ? null : await findSubscriber(store, name);
  const letters = await store.read('listDeadLetters', { subscriber, limit });
  const text = table(['SUBSCRIBER', 'EVENT', 'CONVERSATION', 'ATTEMPTS', 'DIED', 'ERROR'], letters.map(letterCells));
  return listing({ data: letters.map(letterView), text, none: 'No dead letters.' });
}

const ERROR_CHARS = 100;

function letterCells({ subscriber, eventId, key, attempts, at, error }: DeadLetter): string[] {
  return [subscriber, eventId, key || '-', String(attempts), relativeTime(at), shorten(error, ERROR_CHARS)];
}

function letterView({ subscriber, eventId, key, attempts, error, at }: DeadLetter) {
  return { subscriber, event_id: eventId, session_key: key || null, attempts, error, at: isoTime(at) };
}
