import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { someOf, testInFullRun } from '../support/full-run.ts';
import { MESSAGE, Scene, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

describe('a plugin that', () => {
  test('blocks its process does not hold up the gateway', async () => {
    scene.plugin(
      'blocks',
      `const { existsSync } = await import('node:fs');
      ctx.on('session:start', () => { note('began', 1); while (!existsSync(ctx.home + '/go')); note('done', 1); });`,
    );
    scene.plugin('other', "ctx.on('session:start', () => note('heard', 1));");
    await scene.start();
    await scene.base.talk(1);
    await until('it blocks', () => scene.lines('began').length === 1);
    // Sessions start and others hear of it, while it waits for us.
    await scene.base.talk(2);
    await until('the other has heard of both', () => scene.lines('heard').length === 2);
    expect(scene.lines('done')).toEqual([]);
    writeFileSync(join(scene.home, 'go'), '');
    await until('it is done', () => scene.lines('done').length === 2);
    expect(scene.plugins?.list()[0]).toMatchObject({ state: 'ready', restarts: 0 });
  });

  test('never comes back is ended, and its events are tried again in a new process', async () => {
    scene.plugin(
      'spins',
      `const { existsSync } = await import('node:fs');
      ctx.on('session:start', () => { if (!existsSync(ctx.home + '/spun')) { note('spun', 1); for (;;); } note('done', 1); });`,
    );
    const plugins = await scene.start({ limits: { pingMs: 100, pings: 5 } });
    await scene.base.talk(1);
    await until('it was heard', () => scene.lines('done').length === 1);
    expect(plugins.list()).toMatchObject([{ state: 'ready', restarts: 1, failed: 1 }]);
    expect(scene.logged).toContain('it did not answer for 500 ms');
  });

  testInFullRun('never comes back from one event loses that one alone, and nobody else pays for it', async () => {
    scene.plugin(
      'poisoned',
      `ctx.on('session:start', ({ session_key }) => { if (session_key?.endsWith(':bad')) for (;;); note('heard', session_key); });`,
    );
    await scene.start({ maxAttempts: 1, limits: { pingMs: 100, pings: 5 } });
    await scene.base.talk('bad');
    for (const chat of [1, 2, 3, 4, 5]) await scene.base.talk(chat);
    await until('the others were heard', () => scene.lines('heard').length === 5, 20_000);
    expect(await scene.base.subscriber('plugin:poisoned')).toMatchObject({ deadLetters: 1 });
  });

  test('never comes back does not keep the gateway from stopping', async () => {
    scene.plugin('stuck', "ctx.on('session:start', () => { note('began', 1); for (;;); });");
    const plugins = await scene.start({ limits: { unloadMs: 500 } });
    await scene.base.talk(1);
    await until('it is stuck', () => scene.lines('began').length === 1);
    const since = Date.now();
    await plugins.stop();
    expect(Date.now() - since).toBeLessThan(6000);
    expect(await scene.base.subscriber('plugin:stuck')).toMatchObject({ lag: 1, deadLetters: 0 });
  });

  const deaths: [name: string, code: string, why: string][] = [
    ['exits', 'process.exit(3);', 'it exited with 3'],
    [
      'forgets a rejection',
      "void Promise.reject(new Error('lost')); await new Promise(() => 0);",
      'it threw Error: lost',
    ],
    [
      'throws later',
      "setTimeout(() => { throw new Error('late'); }); await new Promise(() => 0);",
      'it threw Error: late',
    ],
    ['takes all memory', 'const all: unknown[] = []; for (;;) all.push(new Array(10_000).fill({}));', 'out of memory'],
  ];
  test.each(someOf(deaths, (_, index) => index < 2))(
    '%s is started again, and hears the same event',
    async (_, code, why) => {
      scene.plugin(
        'dies',
        `const { existsSync } = await import('node:fs');
      ctx.on('session:start', async (event) => {
        if (!existsSync(ctx.home + '/tried')) { note('tried', 1); ${code} }
        note('done', event.session_id);
      });`,
        'memory: 64',
      );
      const plugins = await scene.start();
      const id = await scene.base.talk(1);
      await until('it was heard', () => scene.lines('done').length === 1, 20_000);
      expect(scene.lines('done')).toEqual([id]);
      expect(plugins.list()).toMatchObject([{ state: 'ready', restarts: 1, failed: 1 }]);
      expect(scene.logged).toContain(why);
    },
  );

  test('dies is away until it is started again, and says so', async () => {
    scene.plugin(
      'mortal',
      `ctx.command({ name: 'die', summary: 'dies', run: () => process.exit(1) });
      ctx.tool({ name: 'look', description: 'looks', inputSchema: {}, run: () => 'seen' });
      ctx.platform({ name: 'pigeon', send: () => undefined });`,
    );
    const plugins = await scene.start();
    const signal = new AbortController().signal;
    const context = { sessionId: 's', turnId: 't', platform: 'p', userId: null, signal };
    const [tool] = plugins.tools();
    const [platform] = plugins.platforms();
    const place = { type: 'dm', chat: '1' } as const;
    const use = { name: 'die', args: '', conversation: { key: 'k', platform: 'p', userId: null }, session: null };
    await expect(plugins.commands()[0]?.run(use)).rejects.toMatchObject({ code: 'plugin_failed' });
    expect(plugins.list()).toMatchObject([{ state: 'restarting', problem: 'its process died: it exited with 1' }]);
    const away = { code: 'tool_failed', message: expect.stringContaining('nothing was done') };
    await expect(tool?.run({}, context)).rejects.toMatchObject(away);
    await expect(platform?.send(place, { text: 'hi' }, signal)).rejects.toMatchObject({ code: 'plugin_unavailable' });
    await until('it is back', () => plugins.list()[0]?.state === 'ready');
    expect(await tool?.run({}, context)).toBe('seen');
    await platform?.send(place, { text: 'hi' }, signal);
  });

  testInFullRun('dies over and over rests longer each time', async () => {
    scene.plugin('dies', "setTimeout(() => process.exit(1), 20); note('loads', Date.now());");
    await scene.start();
    await until('it was loaded three times', () => scene.lines('loads').length === 3);
    const [a, b, c] = scene.lines('loads');
    expect(b - a).toBeGreaterThan(950);
    expect(c - b).toBeGreaterThan(1900);
  });

  testInFullRun('writes without end fills neither the log nor the gateway', async () => {
    scene.plugin(
      'loud',
      `const { existsSync } = await import('node:fs');
      ctx.on('session:start', () => {
        const began = Date.now();
        for (let i = 0; i < 20_000 || !existsSync(ctx.home + '/go'); i++) {
          console.log('line', i);
          ctx.log.info('again', { i });
        }
        note('seconds', (Date.now() - began) / 1000);
      });`,
    );
    scene.plugin('other', "ctx.on('session:start', () => note('heard', 1));");
    await scene.start();
    await scene.base.talk(1);
    await scene.base.talk(2);
    await until('another has heard of both meanwhile', () => scene.lines('heard').length === 2);
    expect(scene.lines('seconds')).toEqual([]);
    writeFileSync(join(scene.home, 'go'), '');
    await until('it is done', () => scene.lines('seconds').length === 2, 20_000);
    await until('it is said', () => scene.logged.includes('lines were left out'));
    const [first, second] = scene.lines('seconds');
    // A hundred lines a second.
    const most = 100 * (Math.ceil(first + second) + 5);
    expect(scene.base.logged.filter((line) => line.includes('"plugin":"loud"')).length).toBeLessThan(most);
  });
});

describe('a plugin that cannot be loaded', () => {
  test.each([
    ['plugin.yaml', 'enabled: perhaps', 'bad: plugin.yaml: enabled is true or false'],
    ['plugin.yaml', 'a: [', 'bad: plugin.yaml: it is no YAML'],
    ['plugin.yaml', 'main: other.ts', 'bad: main is "other.ts", and there is no such file'],
    ['plugin.yaml', 'main: ../x.ts', 'bad: main is "../x.ts", which is outside the folder'],
    ['plugin.yaml', 'memory: 1', 'bad: plugin.yaml: memory is a number of megabytes'],
    ['index.ts', 'export const nothing = 1;', 'bad/index.ts: it exports no setup(ctx); export function setup(ctx)'],
    ['index.ts', 'export function setup( {', 'bad/index.ts: SyntaxError'],
    ['index.ts', 'import "./missing.ts";', 'bad/index.ts: '],
    ['index.ts', 'export function setup() { throw new Error("no"); }', 'bad/index.ts: no'],
    ['index.ts', 'process.exit(4); export function setup() {}', 'bad could not be loaded: it exited with 4'],
    ['index.ts', 'for (;;); export function setup() {}', 'bad could not be loaded: it was not loaded within 3000 ms'],
  ])('for its %s (%s) is refused alone', async (file, text, problem) => {
    scene.plugin('bad', '', '', { [file]: text });
    scene.plugin('good', "ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: 'passed' }));");
    const plugins = await scene.start(text.startsWith('for (;;)') ? { limits: { loadMs: 3000 } } : {});
    const [bad, good] = plugins.list();
    expect(bad).toMatchObject({ name: 'bad', state: 'bad', problem: expect.stringContaining(problem) });
    expect(good).toMatchObject({ name: 'good', state: 'ready' });
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'passed' });
    expect(scene.logged).toContain('plugin refused');
  });

  test('is loaded as soon as it is mended', async () => {
    scene.plugin('mended', "throw new Error('not yet');");
    const plugins = await scene.start();
    expect(plugins.list()[0]?.state).toBe('bad');
    scene.plugin('mended', '');
    await until('it is ready', () => plugins.list()[0]?.state === 'ready');
  });

  test('is one without a plugin.yaml, and no folder is no plugin', async () => {
    scene.plugin('none', '');
    rmSync(join(scene.home, 'plugins/none/plugin.yaml'));
    expect((await scene.start()).list()).toMatchObject([{ state: 'bad', problem: 'none: there is no plugin.yaml' }]);
    rmSync(join(scene.home, 'plugins'), { recursive: true });
    await until('it is away', () => scene.plugins?.list().length === 0);
  });
});
