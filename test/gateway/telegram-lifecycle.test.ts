import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BotApiFake } from '../fakes/bot-api.ts';
import { Scene } from './scene.ts';

const DAY = 86_400_000;
let bot: BotApiFake;
let scene: Scene;

beforeEach(async () => {
  bot = await BotApiFake.start();
  const telegram = { token: bot.token, api_root: bot.url, allow: ['42'] };
  const settings = { sessions: { reset: { idle: '24h' } }, display: { streaming: false }, platforms: { telegram } };
  scene = await Scene.open(settings, withHook);
});

afterEach(async () => {
  await scene.close();
  await bot.close();
});

function withHook(home: string): void {
  const folder = join(home, 'hooks', 'diary');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'HOOK.yaml'), 'events: [session:start, session:end]');
  const code = 'read -r event\nprintf "%s\\n" "$event" >> "$MOIRAI_HOME/diary.jsonl"\n';
  writeFileSync(join(folder, 'handler.sh'), code, { mode: 0o700 });
}

async function diary(lines: number): Promise<unknown[]> {
  const file = join(scene.home, 'diary.jsonl');
  const written = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []);
  await scene.until(`the hook wrote ${lines} lines`, () => written().length >= lines);
  return written().map((line) => {
    const { type, session_key, reason = null } = JSON.parse(line) as Record<string, unknown>;
    return [type, session_key, reason];
  });
}

const texts = (): string[] => [...bot.messages.values()].map(({ text }) => text);
const KEY = 'agent:main:telegram:dm:42';

async function said(text: string, answers: number): Promise<void> {
  bot.say({ text });
  await scene.until(`${answers} messages`, () => texts().length >= answers);
}

test('a session goes idle with nobody writing, a file hook hears it, and the next message begins another one', async () => {
  await said('one', 1);
  scene.later(DAY);
  await scene.gateway.engine.expire('watcher');
  expect(texts()).toEqual(['did: one']);
  await said('two', 3);
  const notice = expect.stringMatching(/ended after 1d without a message; this is a fresh one/);
  expect(texts()).toEqual(expect.arrayContaining([notice, 'did: two']));
  expect(await diary(3)).toEqual([
    ['session:start', KEY, null],
    ['session:end', KEY, 'idle_expiry'],
    ['session:start', KEY, null],
  ]);
});

test('where nobody watches the deadline, the message itself ends the old session first', async () => {
  await said('one', 1);
  // The store's time goes by; the watcher sleeps by the machine's.
  scene.later(DAY);
  await said('two', 3);
  expect(texts()).toEqual(expect.arrayContaining([expect.stringMatching(/this is a fresh one/), 'did: two']));
  expect(await diary(3)).toEqual([
    ['session:start', KEY, null],
    ['session:end', KEY, 'auto_reset'],
    ['session:start', KEY, null],
  ]);
});
