import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import type { GatewayProcess } from './process.ts';
import { TelegramScene } from './telegram-scene.ts';

let scene: TelegramScene;

afterEach(() => scene.close());

test('messages that can never be taken are answered and passed, and others are heard', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway();
  await gateway.start();
  for (let i = 0; i < 105; i++) bot.say({ text: '\ufeff' });
  bot.say({ text: 'hello', chat: 43, from: 43 });
  expect(await scene.heardIn(43, 1, 30_000)).toEqual(['did: hello']);
  await until('nothing is brought again', () => bot.pending.length === 0, 30_000);
  expect((await scene.heardIn(42, 1))[0]).toContain('the message is empty');
  expect((await gateway.events('work:set_aside'))[0]).toMatchObject({ work: 'turn', attempts: 1 });
}, 90_000);

test('a message that a gate rewrites to nothing is answered and passed', async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway();
  writePlugin(gateway, 'eraser', "ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: ' ' }));");
  await gateway.start();
  scene.bot.say({ text: 'hello' });
  expect((await scene.heardIn(42, 1, 30_000))[0]).toContain('the message is empty');
  await until('it is not brought again', () => scene.bot.pending.length === 0, 30_000);
}, 60_000);

test('a file that is slow to come delays nobody else, and is fetched after a restart', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway();
  await gateway.start();
  const document = { ...bot.keepFile(Buffer.from('a,b\n')), file_name: 'table.csv' };
  bot.failNext('getFile', 'silence');
  bot.say({ fields: { document, caption: 'look' } });
  bot.say({ text: 'hello', chat: 43, from: 43 });
  expect(await scene.heardIn(43, 1, 30_000)).toEqual(['did: hello']);
  await until('the file is asked for', () => bot.callsOf('getFile').length === 1, 30_000);
  await until('the message is durable', () => bot.pending.length === 0, 30_000);
  await gateway.end('SIGKILL');
  await gateway.start();
  await scene.heardIn(42, 1, 30_000);
  expect(lastAsked()).toMatch(/\n\[A file table\.csv, saved as received\/telegram-document-\w+\.csv\]\nlook$/);
  const [workspace = ''] = readdirSync(join(gateway.home, 'workspaces'));
  expect(readdirSync(join(gateway.home, 'workspaces', workspace, 'received'))).toHaveLength(1);
}, 120_000);

test('a file that cannot be had is told to the agent in its turn', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  await scene.gateway().start();
  const document = { ...bot.keepFile(Buffer.from('a')), file_name: 'table.csv' };
  bot.files.clear();
  bot.say({ fields: { document, caption: 'look' } });
  await scene.heardIn(42, 1, 30_000);
  expect(lastAsked()).toBe('[A file table.csv, not received: it could not be fetched]\nlook');
}, 60_000);

test('rows, a hook, a plugin and a job that cannot be processed stop neither a start nor anybody else', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway({}, { allow: ['*'] });
  await gateway.start();
  bot.say({ text: 'one' });
  for (const chat of [43, 44]) bot.say({ text: 'one', chat, from: chat });
  for (const chat of [42, 43, 44]) await scene.heardIn(chat, 1, 30_000);
  await gateway.end('SIGTERM');
  poisonStore(gateway);
  writePlugin(gateway, 'endless', 'for (;;);');
  writeFile(gateway, 'hooks/broken/HOOK.yaml', `events: ["session:*"]\ndescription: ${'*'.repeat(1000)}`);
  writeFile(gateway, 'hooks/broken/handler.js', 'for (;;);');
  await gateway.start();
  // Generous: other tests run at the same time.
  await until('it is ready', async () => (await fetch(`${gateway.url}/ready`)).status === 200, 10_000);
  bot.say({ text: 'two', chat: 44, from: 44 });
  expect((await scene.heardIn(44, 2, 30_000)).at(-1)).toContain('two');
  bot.say({ text: 'two' });
  await until('also where the rows are', () => scene.textsIn(42).some((text) => text.includes('two')), 30_000);
  await until(
    'what cannot be read is set aside',
    async () => {
      const events = await gateway.events('work:set_aside');
      return ['delivery', 'tick', 'event'].every((work) => events.some((event) => event.work === work));
    },
    30_000,
  );
}, 180_000);

/** What the agent was told last. */
function lastAsked(): string {
  const { body } = scene.model.requests.at(-1)!;
  return String(body.messages.at(-1)?.content);
}

/** A reply, a message, a job and an event with values that no program wrote. */
function poisonStore({ home }: GatewayProcess): void {
  const db = new DatabaseSync(join(home, 'state.db'));
  const { id, key } = db.prepare("SELECT id, key FROM sessions WHERE key LIKE '%:42'").get() as {
    id: string;
    key: string;
  };
  const now = Date.now();
  db.prepare(
    `INSERT INTO deliveries (id, session_id, session_key, platform, target, text, state, attempts, created_at)
     VALUES ('dlv_poison', ?, ?, 'telegram', '{', 'never', 'queued', 0, ?)`,
  ).run(id, key, now);
  const lane = db.prepare(
    `INSERT INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted) VALUES (?, ?, ?, ?, 0, 0, 0, 0)`,
  );
  lane.run('replies/telegram', key, now, now);
  db.prepare(
    `INSERT INTO jobs (id, schedule, timezone, prompt, target, created_at) VALUES ('job_poison', '?', 'Nowhere', 'x', '{', ?)`,
  ).run(now);
  lane.run('ticks', 'job_poison', now, now);
  db.prepare("UPDATE sessions SET origin = '{' WHERE id = (SELECT id FROM sessions WHERE key LIKE '%:43')").run();
  db.prepare(
    `INSERT INTO turns (id, session_id, by_actor, state, text, created_at, cuts)
     VALUES ('trn_poison', ?, 'user', 'queued', ?, ?, 0)`,
  ).run(id, `|a|\n${'-|:'.repeat(50_000)}\ufeff`, now);
  const { no } = db.prepare('SELECT max(no) AS no FROM events WHERE session_key = ?').get(key) as { no: number };
  db.prepare("UPDATE events SET body = '{' WHERE no = ?").run(no);
  const { queue } = db.prepare("SELECT 'events/' || name AS queue FROM subscribers LIMIT 1").get() as { queue: string };
  db.prepare('DELETE FROM lanes WHERE queue = ? AND key = ?').run(queue, key);
  lane.run(queue, key, no, no);
  db.close();
}

function writePlugin(gateway: GatewayProcess, name: string, body: string): void {
  writeFile(gateway, `plugins/${name}/plugin.yaml`, 'description: for a test');
  const atImport = body.startsWith('ctx.') ? '' : body;
  writeFile(gateway, `plugins/${name}/index.js`, `${atImport}\nexport function setup(ctx) { ${body} }`);
}

function writeFile({ home }: GatewayProcess, path: string, text: string): void {
  mkdirSync(join(home, path, '..'), { recursive: true });
  writeFileSync(join(home, path), text);
}
