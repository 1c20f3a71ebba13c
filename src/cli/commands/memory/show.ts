import { join } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../../config/config.ts';
import { isoTime } from '../../../engine/views.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { createProviders } from '../../../memory/create-provider.ts';
import { EVERYBODY, type Inspectable, isInspectable } from '../../../memory/inspect.ts';
import { ownerHash, personHash, scopeOf } from '../../../memory/scope.ts';
import type { Store } from '../../../store/port.ts';
import { readConfig } from '../../configuration.ts';
import { print, printable, printJson, printLine, relativeTime, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Shows of whom something is remembered; or, given one of them, what.')
    .argument('[of]', 'an owner of the list, PLATFORM:USER, the key of a conversation; or files or sqlite')
    .addHelpText('after', NOTE)
    .action((of: string | undefined) => show(command, of));
}

const NOTE = `
Memories in files and in the store can be looked at; what a service made of a conversation is on its own server.`;

async function show(command: Command, of: string | undefined): Promise<void> {
  const settings = settingsOf(command);
  const config = await readConfig(settings);
  await openStoreSession(settings, async ({ store }) => {
    const isName = of !== undefined && INSPECTABLE.includes(of);
    const provider = isName ? of : config.memory.provider;
    const memory = await openMemory(config, provider, store);
    if (of === undefined || isName) return showOwners(memory, settings.json);
    return showEntries(memory, await findOwner(memory, of, store), settings.json);
  });
}

const INSPECTABLE = ['files', 'sqlite'];

/** The memory itself, without a gateway: looking at it needs none. */
async function openMemory(config: Config, name: string, store: Store): Promise<Inspectable> {
  const { home, memory } = config;
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

async function showOwners(memory: Inspectable, json: boolean): Promise<void> {
  const owners = await memory.owners();
  if (json) return printJson({ data: owners, next: null });
  if (owners.length === 0) return printLine('Nothing is remembered yet.');
  const rows = owners.map(({ owner, who, entries }) => [owner, String(entries), who ?? '-']);
  return print(table(['OWNER', 'ENTRIES', 'WHO'], rows));
}

async function showEntries(memory: Inspectable, owner: string, json: boolean): Promise<void> {
  const entries = await memory.entries(owner);
  if (json) return printJson({ data: entries.map((entry) => ({ ...entry, at: isoTime(entry.at) })), next: null });
  if (entries.length === 0) return printLine('Nothing is remembered here.');
  const now = Date.now();
  for (const { text, where, at } of entries) {
    const since = at === null ? '' : `, ${relativeTime(at, now)}`;
    await printLine(`${printable(text)}  (${printable(where)}${since})`);
  }
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
