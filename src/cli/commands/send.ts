import { randomUUID } from 'node:crypto';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { buildKey } from '../../lifecycle/session-key.ts';
import type { KnownPlace } from '../../outbound/place-store.ts';
import { sendOut } from '../../outbound/send-out.ts';
import { resolveTarget } from '../../outbound/targets.ts';
import { readConfig } from '../configuration.ts';
import { findGateway } from '../gateway/holder.ts';
import { print, printJson, printLine, relativeTime, shorten, table } from '../print.ts';
import { type Settings, settingsOf } from '../settings.ts';
import { openStoreSession, type StoreSession } from '../store-session.ts';

export function define(command: Command): void {
  command
    .description('Sends a message to a conversation. It is kept until it has left, and the agent there knows of it.')
    .argument('[target]', 'home, <platform>:<chat>[:<thread>], or a name that --list shows')
    .argument('[text...]', 'what to send; - or nothing reads it from standard input')
    .option('--list', 'show the places that can be named')
    .option('--alias <name>', 'give the target this name, and send nothing')
    .action((target: string | undefined, words: string[], options: Options) => send(command, target, words, options));
}

interface Options {
  readonly list?: true;
  readonly alias?: string;
}

async function send(command: Command, target: string | undefined, words: string[], options: Options): Promise<void> {
  const settings = settingsOf(command);
  if (options.list) return openStoreSession(settings, (here) => list(here, settings));
  if (target === undefined) throw new MoiraiError('usage', 'a target is missing; --list shows what can be named');
  if (options.alias !== undefined)
    return openStoreSession(settings, (here) => name(here, settings, target, options.alias ?? ''));
  const text = words.length === 0 || words.join(' ') === '-' ? await readAll(process.stdin) : words.join(' ');
  if (text.trim() === '') throw new MoiraiError('bad_input', 'there is nothing to send');
  await openStoreSession(settings, (here) => sendText(here, settings, target, text));
}

/** In the name of a session of its own, so that it is in the log like everything else. */
async function sendText(here: StoreSession, settings: Settings, target: string, text: string): Promise<void> {
  const config = await readConfig(settings);
  const place = await resolveTarget(target, { store: here.store, rules: config.sessions, asker: null });
  if (place === null) throw new MoiraiError('target_unknown', 'nothing is sent to "local"');
  const engine = await here.engine();
  const key = buildKey({ profile: 'main', platform: 'batch', type: 'dm', chat: randomUUID() });
  const conversation = { key, kind: 'batch', platform: 'batch', userId: null, origin: null, attached: true } as const;
  const session = await engine.start(conversation, { title: `send ${target}`.slice(0, 80) });
  const id = `${session.id}:sent`;
  await sendOut(engine, session.id, { place, text, id, platform: null });
  await engine.end(session.id, { reason: 'batch_complete', trigger: 'process' });
  if (settings.json) return printJson({ id, platform: place.platform, target: place.target, state: 'queued' });
  const waits = findGateway(settings.home) === null ? ' No gateway runs here: it leaves when one does.' : '';
  return printLine(`On its way to ${place.platform}.${waits}`);
}

const HEADINGS = ['TARGET', 'NAME', 'ALIAS', 'SEEN', 'STATE'];

async function list({ store }: StoreSession, settings: Settings): Promise<void> {
  const places = await store.read('listPlaces', { platform: null });
  if (settings.json) return printJson({ data: places.map(placeView), next: null });
  if (places.length === 0) return printLine('Nobody has talked to the agent on any platform yet.');
  const now = Date.now();
  const cells = ({ platform, id, name, alias, seenAt, goneAt, goneBecause }: KnownPlace): string[] => [
    ...[`${platform}:${id}`, shorten(name ?? '-', 40), alias ?? '-', relativeTime(seenAt, now)],
    goneAt === null ? 'there' : `gone: ${shorten(goneBecause ?? '', 60)}`,
  ];
  return print(table(HEADINGS, places.map(cells)));
}

async function name({ store }: StoreSession, settings: Settings, target: string, alias: string): Promise<void> {
  const [platform = '', ...id] = target.split(':');
  await store.write('namePlace', { platform, id: id.join(':'), alias: alias === '' ? null : alias });
  if (settings.json) return printJson({ target, alias: alias === '' ? null : alias });
  return printLine(alias === '' ? `${target} has no other name now.` : `${target} is called ${alias} now.`);
}

function placeView({ platform, id, name, alias, goneBecause }: KnownPlace) {
  return { target: `${platform}:${id}`, platform, name, alias, gone: goneBecause };
}
