import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import type { GatewayProcess } from './process.ts';
import { TelegramScene } from './telegram-scene.ts';
import { userLines } from './user-lines.ts';

let scene: TelegramScene;

/** A start takes no longer, whatever there is in the store and the home. */
const READY_MS = 2000;

afterEach(() => scene.close());

test('messages that can never be taken are answered and passed, and others are heard', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway();
  await gateway.start();
  for (let i = 0; i < 105; i++) bot.say({ text: '\ufeff' });
  bot.say({ text: 'hello', chat: 43, from: 43 });
  expect(await scene.heardIn(43, 1, 10_000)).toEqual(['did: hello']);
  await until('nothing is brought again', () => bot.pending.length === 0, 10_000);
  expect((await scene.heardIn(42, 1))[0]).toContain('the message is empty');
  expect((await gateway.events('work:set_aside'))[0]).toMatchObject({ work: 'turn', attempts: 1 });
}, 90_000);

test('a message that a gate rewrites to nothing is answered and passed', async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway();
  writePlugin(gateway, 'eraser', "ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: ' ' }));");
  await gateway.start();
  scene.bot.say({ text: 'hello' });
  expect((await scene.heardIn(42, 1, 10_000))[0]).toContain('the message is empty');
  await until('it is not brought again', () => scene.bot.pending.length === 0, 10_000);
}, 60_000);

test('a message of a platform that is too long to be read is answered and passed', async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway({ access: { allow: ['raven:ada'] } });
  writePlugin(
    gateway,
    'raven',
    `ctx.platform({
      name: 'raven',
      start: async (inbox) => {
        for (const [i, text] of ['x'.repeat(40_001), 'x'.repeat(40_000)].entries()) {
          await inbox.receive({ chat_id: '1', user_id: 'ada', message_id: String(i), text });
        }
      },
      send: (target, text) => appendFileSync(ctx.home + '/heard', text.slice(0, 60) + '\\n'),
    });`,
    "import { appendFileSync } from 'node:fs';",
  );
  await gateway.start();
  const heard = (): string => readFileSync(join(gateway.home, 'heard'), { encoding: 'utf8', flag: 'a+' });
  await until('both are answered', () => heard().includes('did: '), 15_000);
  expect(heard()).toContain('a message has at most 40000 characters');
  expect(await gateway.events('work:set_aside')).toMatchObject([{ work: 'turn', attempts: 1 }]);
}, 60_000);

test('a file that is slow to come delays nobody else, and is fetched after a restart', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway();
  await gateway.start();
  const document = { ...bot.keepFile(Buffer.from('a,b\n')), file_name: 'table.csv' };
  bot.failNext('getFile', 'silence');
  bot.say({ fields: { document, caption: 'look' } });
  await until('the file is asked for', () => bot.callsOf('getFile').length === 1, 30_000);
  bot.say({ text: 'hello', chat: 43, from: 43 });
  expect(await scene.heardIn(43, 1, 8000)).toEqual(['did: hello']);
  await until('the message is durable', () => bot.pending.length === 0, 8000);
  await gateway.end('SIGKILL');
  await gateway.start();
  await scene.heardIn(42, 1, 30_000);
  expect(lastAsked()).toMatch(/\n\[A file table\.csv, saved as received\/telegram-document-\w+\.csv\]\nlook$/);
  const [workspace = ''] = readdirSync(join(gateway.home, 'workspaces'));
  expect(readdirSync(join(gateway.home, 'workspaces', workspace, 'received'))).toHaveLength(1);
}, 120_000);

test('a sticker that is slow to be looked at delays nobody else', async () => {
  const looking = Promise.withResolvers<void>();
  const looks: unknown[] = [];
  scene = await TelegramScene.open(async ({ body }) => {
    const { content } = body.messages.at(-1) ?? {};
    if (!Array.isArray(content)) return { text: `did: ${userLines(body.messages).join(' ')}` };
    looks.push(content);
    await looking.promise;
    return { text: 'A cat.' };
  });
  const { bot } = scene;
  await scene.gateway().start();
  const sticker = { ...bot.keepFile(Buffer.from('webp')), width: 1, height: 1, is_animated: false, is_video: false };
  bot.say({ fields: { sticker } });
  await until('it is looked at', () => looks.length === 1, 30_000);
  bot.say({ text: 'hello', chat: 43, from: 43 });
  expect(await scene.heardIn(43, 1, 8000)).toEqual(['did: hello']);
  expect(scene.textsIn(42)).toEqual([]);
  looking.resolve();
  await scene.heardIn(42, 1, 30_000);
  expect(lastAsked()).toContain('A cat.');
}, 60_000);

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

test('rows, hooks, plugins and jobs that cannot be processed stop neither a start nor anybody else', async () => {
  scene = await TelegramScene.open();
  const { bot } = scene;
  const gateway = scene.gateway({}, { allow: ['*'] });
  const clean = [await startUntilReady(gateway)];
  for (const chat of [42, 43, 44]) bot.say({ text: 'one', chat, from: chat });
  for (const chat of [42, 43, 44]) await scene.heardIn(chat, 1, 30_000);
  writeBrokenExtensions(gateway);
  const poisoned: number[] = [];
  for (const round of [1, 2, 3]) {
    await gateway.end('SIGTERM');
    poisonStore(gateway, round);
    poisoned.push(await startUntilReady(gateway));
  }
  console.log(`ready after ${clean.map(Math.round)} ms, with poison after ${poisoned.map(Math.round).join(', ')} ms`);
  // The fastest: other tests run at the same time.
  expect(Math.min(...poisoned)).toBeLessThan(READY_MS);
  bot.say({ text: 'two', chat: 44, from: 44 });
  expect((await scene.heardIn(44, 2, 30_000)).at(-1)).toContain('two');
  for (const chat of [42, 43]) {
    bot.say({ text: 'two', chat, from: chat });
    await until(`an answer in ${chat}`, () => scene.textsIn(chat).some((text) => text.includes('two')), 30_000);
  }
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

/** From the start of its process until it says that it takes messages, in milliseconds. */
async function startUntilReady(gateway: GatewayProcess): Promise<number> {
  const began = performance.now();
  await gateway.start();
  while ((await fetch(`${gateway.url}/ready`)).status !== 200) await sleep(10);
  return performance.now() - began;
}

/** One of each kind that never comes back, and one that ends. */
function writeBrokenExtensions(gateway: GatewayProcess): void {
  writePlugin(gateway, 'endless', 'for (;;);');
  writePlugin(gateway, 'exiting', 'process.exit(3);');
  writePlugin(gateway, 'throwing', "throw new Error('broken');");
  writeHook(gateway, 'endless', 'for (;;);');
  writeHook(gateway, 'exiting', 'process.exit(3);');
  writeHook(gateway, 'throwing', "throw new Error('broken');");
  writeHook(gateway, 'endless-event', 'export const handle = () => { for (;;); };');
}

function writeHook(gateway: GatewayProcess, name: string, body: string): void {
  writeFile(gateway, `hooks/${name}/HOOK.yaml`, 'events: ["session:*"]');
  writeFile(gateway, `hooks/${name}/handler.js`, body);
}

/** A reply, a message, jobs, sessions, subscribers and an event with values that no program wrote. */
function poisonStore({ home }: GatewayProcess, round: number): void {
  const db = new DatabaseSync(join(home, 'state.db'));
  const sessionOf = (chat: number) =>
    db.prepare("SELECT id, key FROM sessions WHERE key LIKE ? AND state <> 'ended'").get(`%:${chat}`) as {
      id: string;
      key: string;
    };
  const { id, key } = sessionOf(42);
  const now = Date.now();
  const lane = db.prepare(
    `INSERT OR REPLACE INTO lanes (queue, key, next_no, last_no, due_at, attempts, waits, interrupted)
     VALUES (?, ?, ?, ?, 0, 0, 0, 0)`,
  );
  for (const [i, target] of ['{', '5', '"chat"', '[]', '{"chat":{}}'].entries()) {
    db.prepare(
      `INSERT INTO deliveries (id, session_id, session_key, platform, target, text, shape, state, attempts, created_at)
       VALUES (?, ?, ?, 'telegram', ?, 'never', '7', 'queued', 0, ?)`,
    ).run(`dlv_poison_${round}_${i}`, id, key, target, now);
  }
  lane.run('replies/telegram', key, now, now);
  for (const [i, target] of ['{', '5', '{"to":"home"}'].entries()) {
    db.prepare(
      `INSERT INTO jobs (id, schedule, timezone, prompt, target, created_at) VALUES (?, '?', 'Nowhere', 'x', ?, ?)`,
    ).run(`job_poison_${round}_${i}`, target, now);
    lane.run('ticks', `job_poison_${round}_${i}`, now, now);
  }
  db.prepare("UPDATE sessions SET origin = '{', recent_commands = '{' WHERE id = ?").run(sessionOf(43).id);
  const turn = db.prepare(
    `INSERT INTO turns (id, session_id, by_actor, state, text, created_at, cuts) VALUES (?, ?, 'user', 'queued', ?, ?, 0)`,
  );
  turn.run(`trn_poison_${round}_long`, id, `|a|\n${'-|:'.repeat(50_000)}\ufeff`, now);
  turn.run(`trn_poison_${round}_lost`, sessionOf(43).id, 'from nowhere', now);
  turn.run(`trn_poison_${round}_file`, id, 'with a file', now);
  db.prepare(
    "INSERT INTO turn_files (turn_id, position, platform, line, file) VALUES (?, 0, 'telegram', 'x', '5')",
  ).run(`trn_poison_${round}_file`);
  const { no } = db.prepare('SELECT max(no) AS no FROM events WHERE session_key = ?').get(key) as { no: number };
  db.prepare('UPDATE events SET body = ? WHERE no = ?').run(round === 2 ? '5' : '{', no);
  const { queue } = db.prepare("SELECT 'events/' || name AS queue FROM subscribers LIMIT 1").get() as { queue: string };
  lane.run(queue, key, no, no);
  db.prepare('INSERT OR REPLACE INTO subscribers (name, patterns, created_at) VALUES (?, ?, ?)').run(
    `poison-${round}`,
    round === 2 ? '5' : '{',
    now,
  );
  db.close();
}

function writePlugin(gateway: GatewayProcess, name: string, body: string, imports = ''): void {
  writeFile(gateway, `plugins/${name}/plugin.yaml`, 'description: for a test');
  const atImport = body.startsWith('ctx.') ? imports : body;
  writeFile(gateway, `plugins/${name}/index.js`, `${atImport}\nexport function setup(ctx) { ${body} }`);
}

function writeFile({ home }: GatewayProcess, path: string, text: string): void {
  mkdirSync(join(home, path, '..'), { recursive: true });
  writeFileSync(join(home, path), text);
}
