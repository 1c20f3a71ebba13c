import type { Command } from 'commander';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { API_SCOPES, type ApiScope } from '../../lifecycle/api-scopes.ts';
import { parseNames } from '../../lifecycle/list-filters.ts';
import { addApiKey } from '../../people/api-keys.ts';
import { isShortName } from '../../settings/kinds.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { relativeTime, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('all keys, without what proves them')
    .description('Lists the keys of the store and those of config.yaml. What they are is kept nowhere: only a hash is.')
    .action(inStore(list));
  group
    .command('add')
    .summary('make a key')
    .description('Makes a key and shows it, once. It counts at once, for every gateway of the store.')
    .argument('<name>', 'what it is called; its conversations go by this name')
    .option('--scope <scopes>', 'chat, read, admin; several with commas', 'chat')
    .addHelpText(
      'after',
      '\nchat talks, and sees and changes its own conversations; read sees everything and changes nothing;\nadmin may do everything. To renew a key, revoke it and add one of the same name: it keeps its conversations.',
    )
    .action(inStore(add));
  group
    .command('revoke')
    .summary('take a key back')
    .description('Takes a key back: from now on it is wrong. What was begun with it goes on.')
    .argument('<name>', 'as `moirai keys list` shows it')
    .action(inStore(revoke));
}

async function list({ store, settings }: StoreSession): Promise<Answer> {
  const { gateway } = await readConfig(settings);
  const kept = (await store.read('listApiKeys', {})).map(({ name, scopes, createdAt }) => {
    return { name, scopes, from: 'store', created_at: isoTime(createdAt), createdAt };
  });
  const configured = gateway.keys.map(({ name, scopes }) => {
    return { name, scopes, from: 'config', created_at: null, createdAt: null };
  });
  const all = [...configured, ...kept];
  const rows = all.map(({ name, scopes, from, createdAt }) => {
    return [name, scopes.join(','), from, createdAt === null ? '-' : relativeTime(createdAt)];
  });
  return listing({
    data: all.map(({ createdAt: _, ...view }) => view),
    text: table(['NAME', 'SCOPES', 'FROM', 'MADE'], rows),
    none: 'There are no keys beside gateway.api_key.',
  });
}

async function add({ store, settings }: StoreSession, name: string, options: { scope: string }): Promise<Answer> {
  if (!isShortName(name)) {
    throw new MoiraiError('bad_input', `"${name}" is no name: letters, digits, ".", "_" and "-", at most 64`);
  }
  const scopes = [...new Set(parseNames('scope', options.scope, API_SCOPES))] as ApiScope[];
  if (scopes.length === 0) throw new MoiraiError('bad_input', `a key needs a scope: ${API_SCOPES.join(', ')}`);
  const { gateway } = await readConfig(settings);
  if (gateway.keys.some((configured) => configured.name === name)) {
    throw new MoiraiError('api_key_exists', `config.yaml has a key called ${name}`);
  }
  const key = await addApiKey(store, name, scopes);
  const text = `${key}\n\nThe key of ${name} (${scopes.join(', ')}). It is shown this once, and kept nowhere.`;
  return { json: { name, scopes, key }, text };
}

async function revoke({ store }: StoreSession, name: string): Promise<Answer> {
  if (await store.write('revokeApiKey', { name })) {
    return { json: { name, state: 'revoked' }, text: `The key of ${name} does not count any more.` };
  }
  throw new MoiraiError('api_key_unknown', `the store has no key called ${name}`);
}
