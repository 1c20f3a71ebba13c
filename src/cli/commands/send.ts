import { randomUUID } from 'node:crypto';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { buildKey, splitPlatformName } from '../../lifecycle/session-key.ts';
import type { KnownPlace } from '../../outbound/place-store.ts';
import { sendOut } from '../../outbound/send-out.ts';
import { keepToSend } from '../../outbound/sent-files.ts';
import { resolveTarget } from '../../outbound/targets.ts';
import { workspaceFor } from '../../people/workspaces.ts';
import { configuredPlatforms, PLATFORM_NAMES } from '../../platforms/registry.ts';
import { type Answer, answer, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { findGateway } from '../gateway/holder.ts';
import { relativeTime, shorten, table } from '../print.ts';
import type { Settings } from '../settings.ts';
import { openStoreSession, type StoreSession } from '../store-session.ts';

export function define(command: Command): void {
  command
    .description('Sends a message to a conversation. It is kept until it has left, and the agent there knows of it.')
    .argument(
      '[target]',
      'home, <platform>:<chat>[:<thread>], or a name that --list shows; <forum>:new=<title>[;tags=<a>,<b>] opens a post',
    )
    .argument('[text...]', 'what to send; - or nothing reads it from standard input, unless a file is sent')
    .option(
      '--file <path>',
      'send this file with it; again for each',
      (path, before: string[]) => [...before, path],
      [],
    )
    .option('--list', 'show the places that can be named')
    .option('--alias <name>', 'give the target this name, and send nothing')
    .action(answer(send));
}

interface SendOptions {
  readonly file: readonly string[];
  readonly list?: true;
  readonly alias?: string;
}

async function send(
  settings: Settings,
  target: string | undefined,
  words: readonly string[],
  { file, list, alias }: SendOptions,
): Promise<Answer> {
  if (list) return openStoreSession(settings, listPlaces);
  if (target === undefined) throw new MoiraiError('usage', 'a target is missing; --list shows what can be named');
  if (alias !== undefined) return openStoreSession(settings, (here) => namePlace(here, target, alias || null));
  const text = await wordsIn(words, file.length > 0);
  if (text.trim() === '' && file.length === 0) throw new MoiraiError('bad_input', 'there is nothing to send');
  return openStoreSession(settings, (here) => sendIt(here, target, text, file));
}

async function wordsIn(words: readonly string[], mayBeMissing: boolean): Promise<string> {
  if (words.length === 0 && mayBeMissing) return '';
  return words.length === 0 || words.join(' ') === '-' ? readAll(process.stdin) : words.join(' ');
}

/** In the name of a session of its own, so that it is in the log like everything else. */
async function sendIt(here: StoreSession, target: string, text: string, paths: readonly string[]): Promise<Answer> {
  const config = await readConfig(here.settings);
  const place = await resolveTarget(target, { store: here.store, rules: config.sessions, asker: null });
  if (place === null) throw new MoiraiError('target_unknown', 'nothing is sent to "local"');
  const { maxReceived, workspace: workspaces } = config.agent;
  const engine = await here.engine();
  const key = buildKey({ profile: 'main', platform: 'batch', type: 'dm', chat: randomUUID() });
  const conversation = { key, kind: 'batch', platform: 'batch', userId: null, origin: null, attached: true } as const;
  const kept = { workspace: workspaceFor(workspaces, conversation), maxFolderBytes: maxReceived, refusal: () => null };
  // In the order in which they were named; a file that cannot be read ends it before anything is sent.
  const files = [];
  for (const source of paths) files.push(await keepToSend({ ...kept, source }));
  const session = await engine.start(conversation, { title: `send ${target}`.slice(0, 80) });
  const id = `${session.id}:sent`;
  await sendOut(engine, session.id, { place, who: 'The operator', text, files, id, platform: null });
  await engine.end(session.id, { reason: 'batch_complete', trigger: 'process' });
  const waits = waitsFor(config, place.platform, findGateway(here.settings.home) !== null);
  return {
    json: { id, platform: place.platform, target: place.target, state: 'queued' },
    text: `On its way to ${place.platform}.${waits}`,
  };
}

/** Why it does not leave at once, as a sentence; nothing where it does. */
function waitsFor(config: Config, name: string, runs: boolean): string {
  const { platform } = splitPlatformName(name);
  const isOurs = PLATFORM_NAMES.includes(platform);
  if (isOurs && !configuredPlatforms(config).some((each) => each.name === name)) {
    return ` ${name} is not configured here; moirai platforms add ${platform} connects it.`;
  }
  return runs ? '' : ' No gateway runs here: it leaves when one does.';
}

async function listPlaces({ store }: StoreSession): Promise<Answer> {
  const places = await store.read('listPlaces', { platform: null });
  const text = table(['TARGET', 'NAME', 'ALIAS', 'SEEN', 'STATE'], places.map(placeCells));
  const none = 'Nobody has talked to the agent on any platform yet.';
  return listing({ data: places.map(placeView), text, none });
}

function placeCells({ platform, id, name, alias, seenAt, goneAt, goneBecause }: KnownPlace): string[] {
  const state = goneAt === null ? 'there' : `gone: ${shorten(goneBecause ?? '', 60)}`;
  return [`${platform}:${id}`, shorten(name ?? '-', 40), alias ?? '-', relativeTime(seenAt), state];
}

function placeView({ platform, id, name, alias, goneBecause }: KnownPlace) {
  return { target: `${platform}:${id}`, platform, name, alias, gone: goneBecause };
}

async function namePlace({ store }: StoreSession, target: string, alias: string | null): Promise<Answer> {
  const [platform = '', ...id] = target.split(':');
  await store.write('namePlace', { platform, id: id.join(':'), alias });
  const text = alias === null ? `${target} has no other name now.` : `${target} is called ${alias} now.`;
  return { json: { target, alias }, text };
}
