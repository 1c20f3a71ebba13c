import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { createProviders } from '../../memory/create-provider.ts';
import { EVERYBODY, type Inspectable, isInspectable } from '../../memory/inspect.ts';
import { REVIEW_SUBSCRIBER } from '../../memory/memory-review.ts';
import { eventsFor, subscriberName } from '../../memory/memory-subscriber.ts';
import { ownerHash, personHash, scopeOf } from '../../memory/scope.ts';
import type { Store } from '../../store/port.ts';
import type { SubscriberStatus } from '../../store/transactions/subscribers.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { printable, relativeTime, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';
import { eventsCell, figuresOf, SUBSCRIBER_HEADINGS, subscriberCells } from '../subscriber-text.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('who remembers, and how far they are')
    .description(
      'Lists who remembers: the memory of the configuration, the looking over of conversations, old memories.',
    )
    .addHelpText('after', LIST_NOTE)
    .action(inStore(list));
  group
    .command('show')
    .summary('what is remembered, of whom')
    .description('Shows of whom something is remembered; or, given one of them, what.')
    .argument('[of]', 'an owner of the list, PLATFORM:USER, the key of a conversation; or files or sqlite')
    .addHelpText('after', SHOW_NOTE)
    .action(inStore(show));
}

const LIST_NOTE = `
States: ready, new (no gateway has seen it yet), bad (no gateway will start with it), removed (not configured any more).
WAITING counts events that are not delivered yet, DEAD those that were given up; \`moirai hooks replay memory:NAME\` delivers
them again.`;

const SHOW_NOTE = `
Memories in files and in the store can be looked at; what a service made of a conversation is on its own server.`;

async function list({ store, settings }: StoreSession): Promise<Answer> {
  const config = await readConfig(settings);
  const data = memoryRows(config, store, await store.read('listSubscribers', {}));
  const rows = data.map((row) => [row.name, row.state, eventsCell(row.events) || '-', ...subscriberCells(row)]);
  const text = table(['NAME', 'STATE', 'HEARS', ...SUBSCRIBER_HEADINGS], rows);
  return listing({ data, text, none: 'No memory is configured.' });
}

/** A memory as it is listed: what the configuration says, and how it stands in the store. */
type MemoryRow = ReturnType<typeof figuresOf> & {
  readonly name: string;
  readonly state: 'ready' | 'new' | 'bad' | 'removed';
  readonly problem: string | null;
  readonly events: readonly string[];
  /** Null for one that hears of nothing. */
  readonly subscriber: string | null;
};

/** The configured memory, the review of conversations, and what is left of memories that were configured before. */
function memoryRows(config: Config, store: Store, subscribers: readonly SubscriberStatus[]): MemoryRow[] {
  const configured = configuredRow(config, store, subscribers);
  const isReviewed = configured !== null && config.memory.reviewEvery > 0;
  const review = subscribers.filter(({ name }) => name === REVIEW_SUBSCRIBER);
  const left = subscribers.filter(({ name }) => name.startsWith('memory:') && name !== configured?.subscriber);
  return [
    ...(configured === null ? [] : [configured]),
    ...review.map((status) => rowOf(status, isReviewed ? 'ready' : 'removed')),
    ...left.map((status) => rowOf(status, 'removed')),
  ];
}

function configuredRow(
  { memory, home }: Config,
  store: Store,
  subscribers: readonly SubscriberStatus[],
): MemoryRow | null {
  const name = memory.provider;
  if (name === 'none') return null;
  const subscriber = subscriberName({ name });
  const status = subscribers.find((each) => each.name === subscriber);
  if (status !== undefined) return rowOf(status, 'ready');
  const row = { name, events: [], problem: null, subscriber, ...figuresOf(undefined) };
  try {
    const events = createProviders(memory, store).flatMap(eventsFor);
    if (events.length === 0) return { ...row, state: 'ready', subscriber: null };
    return { ...row, state: 'new', events };
  } catch (thrown) {
    // What a plugin brings is known to a gateway only.
    if (existsSync(join(home, 'plugins'))) return { ...row, state: 'new' };
    return { ...row, state: 'bad', problem: MoiraiError.wrap(thrown).message, subscriber: null };
  }
}

function rowOf(status: SubscriberStatus, state: 'ready' | 'removed'): MemoryRow {
  const { name: subscriber, patterns: events } = status;
  const name = subscriber === REVIEW_SUBSCRIBER ? 'review' : subscriber.slice('memory:'.length);
  return { name, state, problem: null, events, subscriber, ...figuresOf(status) };
}

const INSPECTABLE = ['files', 'sqlite'];

async function show({ store, settings }: StoreSession, of: string | undefined): Promise<Answer> {
  const config = await readConfig(settings);
  if (of === undefined) return ownersIn(await openMemory(config, config.memory.provider, store));
  if (INSPECTABLE.includes(of)) return ownersIn(await openMemory(config, of, store));
  const memory = await openMemory(config, config.memory.provider, store);
  return entriesOf(memory, await findOwner(memory, of, store));
}

/** The memory itself, without a gateway: looking at it needs none. */
async function openMemory({ home, memory }: Config, name: string, store: Store): Promise<Inspectable> {
  const [provider] = INSPECTABLE.includes(name) ? createProviders({ ...memory, provider: name }, store) : [];
  if (provider === undefined || !isInspectable(provider)) {
    throw new MoiraiError(
      'bad_input',
      `the memory "${name}" cannot be looked at from here; there are files and sqlite`,
    );
  }
  await provider.initialize?.({ folder: join(home, 'memory') }, new AbortController().signal);
  return provider;
}

async function ownersIn(memory: Inspectable): Promise<Answer> {
  const data = await memory.owners();
  const rows = data.map(({ owner, who, entries }) => [owner, String(entries), who ?? '-']);
  return listing({ data, text: table(['OWNER', 'ENTRIES', 'WHO'], rows), none: 'Nothing is remembered yet.' });
}

async function entriesOf(memory: Inspectable, owner: string): Promise<Answer> {
  const entries = await memory.entries(owner);
  const lines = entries.map(({ text, where, at }) => {
    const since = at === null ? '' : `, ${relativeTime(at)}`;
    return `${printable(text)}  (${printable(where)}${since})\n`;
  });
  const data = entries.map((entry) => ({ ...entry, at: isoTime(entry.at) }));
  return listing({ data, text: lines.join(''), none: 'Nothing is remembered here.' });
}

/** By the beginning of the hash, by person, or by conversation. */
async function findOwner(memory: Inspectable, of: string, store: Store): Promise<string> {
  if (of === EVERYBODY) return of;
  if (/^agent:/.test(of)) return ownerOfConversation(store, of);
  const [, platform, user] = /^([^:]+):(.+)$/.exec(of) ?? [];
  if (platform !== undefined && user !== undefined) return personHash(platform, user);
  const found = (await memory.owners()).filter(({ owner }) => owner.startsWith(of));
  const [first, another] = found;
  if (first !== undefined && another === undefined) return first.owner;
  const problem = first === undefined ? 'nobody' : 'more than one';
  throw new MoiraiError('bad_input', `${problem} of \`moirai memory show\` begins with "${of}"`);
}

async function ownerOfConversation(store: Store, key: string): Promise<string> {
  const filter = { states: [], kinds: [], platforms: [], reasons: [], user: null, text: null, since: null };
  const { sessions } = await store.read('listSessions', { ...filter, cursor: null, key, limit: 1 });
  const [session] = sessions;
  return ownerHash(session === undefined ? { platform: '', userId: null, sessionKey: key } : scopeOf(session));
}
