import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { testInFullRun } from '../support/full-run.ts';
import { MESSAGE, Scene, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

const rewrite = (text: string): string =>
  `ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: '${text}' }));`;

describe('after a reload', () => {
  test('each handler is called once, also after five of them', async () => {
    scene.plugin(
      'once',
      "ctx.on('session:start', () => note('a', 1)); ctx.on('on_session_start', () => note('b', 1));",
    );
    scene.plugin('other', "ctx.on('session:*', () => note('c', 1));");
    const plugins = await scene.start();
    for (let i = 0; i < 5; i++) await plugins.reload('all');
    await scene.base.talk(1);
    await until('all heard it', () => ['a', 'b', 'c'].every((file) => scene.lines(file).length > 0));
    await new Promise((next) => setTimeout(next, 300));
    expect(['a', 'b', 'c'].map((file) => scene.lines(file).length)).toEqual([1, 1, 1]);
    expect(plugins.list().map(({ handled }) => handled)).toEqual([1, 1]);
  });

  test('what changed is new, and what did not change is still in its process', async () => {
    const counting = "let asked = 0; ctx.command({ name: 'count', summary: 'counts', run: () => String(++asked) });";
    scene.plugin('same', counting);
    scene.plugin('new', rewrite('one'));
    const plugins = await scene.start();
    const use = { name: 'count', args: '', conversation: { key: 'k', platform: 'p', userId: null }, session: null };
    expect(await plugins.commands()[0]?.run(use)).toBe('1');
    scene.plugin('new', rewrite('two'));
    await plugins.reload();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'two' });
    expect(await plugins.commands()[0]?.run(use)).toBe('2');
  });

  test('a version that cannot be loaded leaves the one before at work, and is told of', async () => {
    scene.plugin('kept', rewrite('old'));
    const plugins = await scene.start();
    scene.plugin('kept', "throw new Error('broken');");
    await plugins.reload();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'old' });
    expect(plugins.list()).toMatchObject([{ state: 'ready', problem: 'kept/index.ts: broken' }]);
    scene.plugin('kept', rewrite('old'), 'enabled: maybe');
    await plugins.reload();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'old' });
    expect(plugins.list()).toMatchObject([{ state: 'ready', problem: expect.stringContaining('plugin.yaml') }]);
    scene.plugin('kept', rewrite('new'));
    await plugins.reload();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'new' });
    expect(plugins.list()).toMatchObject([{ state: 'ready', problem: null }]);
  });

  test('what the old process has in hand is finished before it leaves', async () => {
    const tool = (word: string, wait = ''): string =>
      `const { existsSync } = await import('node:fs');
      ctx.onUnload(() => note('left', '${word}'));
      ctx.tool({ name: 'slow', description: '', inputSchema: {}, run: async () => {
        note('began', 1); ${wait} return '${word}'; } });`;
    const untilTold = "while (!existsSync(ctx.home + '/go')) await new Promise((r) => setTimeout(r, 10));";
    scene.plugin('slow', tool('old', untilTold));
    const plugins = await scene.start();
    const signal = new AbortController().signal;
    const context = { sessionId: 's', turnId: 't', platform: 'p', userId: null, signal };
    const [before] = plugins.tools();
    const running = before?.run({}, context);
    await until('it began', () => scene.lines('began').length === 1);
    scene.plugin('slow', tool('new'));
    await plugins.reload();
    expect(scene.lines('left')).toEqual([]);
    expect(await plugins.tools()[0]?.run({}, context)).toBe('new');
    expect(scene.lines('left')).toEqual([]);
    writeFileSync(join(scene.home, 'go'), '');
    expect(await running).toBe('old');
    await until('it left', () => scene.lines('left').length === 1);
    // What was got before the reload leads to the new process.
    expect(await before?.run({}, context)).toBe('new');
    await plugins.stop();
    expect(scene.lines('left')).toEqual(['old', 'new']);
  });

  test('no event is lost or repeated while it goes on', async () => {
    const code = (version: number): string =>
      `ctx.on('session:start', async (event) => {
        await new Promise((r) => setTimeout(r, 10)); note('heard', [event.session_id, ${version}]); });`;
    scene.plugin('busy', code(0));
    const plugins = await scene.start();
    const ids: string[] = [];
    const reloads: Promise<unknown>[] = [];
    for (let i = 0; i < 40; i++) {
      ids.push(await scene.base.talk(i));
      if (i % 10 === 5) {
        scene.plugin('busy', code(i));
        reloads.push(plugins.reload());
      }
      await new Promise((next) => setTimeout(next, 20));
    }
    await Promise.all(reloads);
    ids.push(await scene.base.talk(40));
    await until('all were heard', () => scene.lines('heard').length >= ids.length);
    expect(
      scene
        .lines('heard')
        .map(([id]) => id)
        .toSorted(),
    ).toEqual(ids.toSorted());
    expect(new Set(scene.lines('heard').map(([, version]) => version)).size).toBeGreaterThan(1);
  });
});

describe('a change in the folder', () => {
  testInFullRun('is seen by itself: a new plugin, one turned off, one removed', async () => {
    const plugins = await scene.start();
    scene.plugin('late', rewrite('late'));
    await until('it is there', () => plugins.list()[0]?.state === 'ready');
    scene.plugin('late', rewrite('late'), 'enabled: false');
    await until('it is off', () => plugins.list()[0]?.state === 'disabled');
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'hi' });
    rmSync(join(scene.home, 'plugins/late'), { recursive: true });
    await until('it is away', () => plugins.list().length === 0);
  });

  test('of what it hears is a change of its subscription, and its place in the log stays', async () => {
    scene.plugin('ear', "ctx.on('session:start', (event) => note('heard', event.type));");
    const plugins = await scene.start();
    await scene.base.talk(1);
    await until('it was heard', () => scene.lines('heard').length === 1);
    scene.plugin('ear', "ctx.on('agent:end', (event) => note('heard', event.type));");
    await plugins.reload();
    expect((await scene.base.subscriber('plugin:ear'))?.patterns).toEqual(['agent:end']);
    await scene.base.talk(2);
    await until('the end was heard', () => scene.lines('heard').length === 2);
    expect(scene.lines('heard')).toEqual(['session:start', 'agent:end']);
  });
});

test('of two plugins that offer one name, the first has it, and the other is told', async () => {
  const offers = (word: string): string =>
    `ctx.tool({ name: 'look', description: '${word}', inputSchema: {}, run: () => '${word}' });
    ctx.command({ name: 'hello', summary: '${word}', run: () => '${word}' });
    ctx.command({ name: 'help', summary: '${word}', run: () => '${word}' });
    ctx.memoryProvider({ name: 'book' });
    ctx.platform({ name: 'pigeon', send: () => undefined });`;
  scene.plugin('b', offers('b'));
  scene.plugin('a', offers('a'));
  const plugins = await scene.start({ reserved: { commands: ['help'] } });
  expect(plugins.tools().map(({ description }) => description)).toEqual(['a']);
  expect(plugins.commands().map(({ name, plugin }) => [name, plugin])).toEqual([['hello', 'a']]);
  expect([...plugins.memoryProviders(), ...plugins.platforms()].map(({ plugin }) => plugin)).toEqual(['a', 'a']);
  const [a, b] = plugins.list();
  expect(a?.withheld).toEqual([`the command "help" is the gateway's`]);
  expect(b).toMatchObject({ state: 'ready', tools: [], commands: [] });
  expect(b?.withheld).toContain(`the tool "look" is a's`);
  expect(b?.withheld).toHaveLength(5);
  expect(scene.logged).toContain('platform \\"pigeon\\" is a');
  rmSync(join(scene.home, 'plugins/a'), { recursive: true });
  await plugins.reload();
  expect(plugins.tools().map(({ plugin }) => plugin)).toEqual(['b']);
});
