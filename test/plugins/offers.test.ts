import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import type { AgentTool } from '../../src/agent/tools/tool.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { PluginMemoryProvider } from '../../src/extensions/plugins/api.ts';
import type { PluginMemory } from '../../src/extensions/plugins/memory-offer.ts';
import type { PluginCommand, PluginTool } from '../../src/extensions/plugins/offers.ts';
import type { PluginInbox, PluginPlatform } from '../../src/extensions/plugins/plugin-platform.ts';
import { MemoryManager } from '../../src/memory/memory-manager.ts';
import type { MemoryProvider, MemorySession } from '../../src/memory/provider.ts';
import type { Incoming, Platform } from '../../src/platforms/platform.ts';
import { processTimers } from '../../src/queue/timers.ts';
import type { SlashCommand } from '../../src/turns/command.ts';
import { chatConversation } from '../support/stores.ts';
import { Scene, TOOL_CALL, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

const { signal } = new AbortController();
const CONTEXT = { sessionId: 'ses_1', turnId: 'trn_1', platform: 'telegram', userId: 'user-1', signal };

test('what plugins offer fits where the gateway has such things', () => {
  expectTypeOf<PluginTool>().toExtend<AgentTool>();
  expectTypeOf<PluginCommand>().toExtend<SlashCommand>();
  expectTypeOf<PluginMemory>().toExtend<MemoryProvider>();
  expectTypeOf<MemoryProvider>().toExtend<PluginMemoryProvider>();
  expectTypeOf<PluginMemoryProvider>().toExtend<MemoryProvider>();
  expectTypeOf<PluginPlatform>().toExtend<Platform>();
});

describe('a tool', () => {
  test('runs in the process, with its arguments and on whose behalf', async () => {
    scene.plugin(
      'tools',
      `ctx.tool({
        name: 'add', description: 'adds', together: true,
        inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
        run: ({ a }: { a: number }, { sessionId, userId }) => ({ sum: a + 1, sessionId, userId }),
      });
      ctx.tool({
        name: 'made', description: 'has a schema that makes itself',
        inputSchema: { toJSONSchema: () => ({ $schema: 'x', type: 'object' }) },
        run: () => { throw new Error('the moon is away'); },
      });`,
    );
    const [add, made] = (await scene.start()).tools();
    expect(add).toMatchObject({ plugin: 'tools', name: 'add', description: 'adds', parallelSafe: true });
    expect(JSON.parse((await add?.run({ a: 1 }, CONTEXT)) ?? '')).toEqual({
      sum: 2,
      sessionId: 'ses_1',
      userId: 'user-1',
    });
    expect(made?.inputSchema).toEqual({ type: 'object' });
    await expect(made?.run({}, CONTEXT)).rejects.toMatchObject({ code: 'tool_failed', message: 'the moon is away' });
  });

  test('is the same object until its plugin is loaded again, so that what was made of it can be kept', async () => {
    scene.plugin('same', "ctx.tool({ name: 'same', description: '', inputSchema: {}, run: () => '' });");
    const plugins = await scene.start();
    const [tool] = plugins.tools();
    expect(plugins.tools()[0]).toBe(tool);
    await plugins.reload('all');
    expect(plugins.tools()[0]).not.toBe(tool);
  });

  test('is stopped with the turn', async () => {
    scene.plugin(
      'waits',
      `ctx.tool({ name: 'wait', description: '', inputSchema: {}, run: (_, { signal }) => {
        note('began', 1);
        return new Promise((done) => signal.addEventListener('abort', () => { note('stopped', 1); done('late'); })); } });`,
    );
    const [tool] = (await scene.start()).tools();
    const abort = new AbortController();
    const running = tool?.run({}, { ...CONTEXT, signal: abort.signal });
    await until('it began', () => scene.lines('began').length === 1);
    abort.abort();
    await expect(running).rejects.toThrow('called off');
    await until('it was told', () => scene.lines('stopped').length === 1);
  });

  test('that answers with more than fits is a failure', async () => {
    scene.plugin(
      'much',
      "ctx.tool({ name: 'much', description: '', inputSchema: {}, run: () => 'x'.repeat(2_000_000) });",
    );
    const [tool] = (await scene.start()).tools();
    await expect(tool?.run({}, CONTEXT)).rejects.toThrow('more than 1000000 characters');
  });

  test('says what a person has to allow: never, always, or as its arguments are', async () => {
    const tool = (name: string, dangerous: string): string =>
      `ctx.tool({ name: '${name}', description: '', inputSchema: {}, dangerous: ${dangerous}, run: () => '' });`;
    scene.plugin(
      'dangers',
      [
        ...[tool('never', 'false'), tool('always', 'true'), tool('words', "'burns the house'")],
        tool('depends', "({ path }: { path: string }) => path === '/' ? 'removes ' + path : null"),
        tool('broken', "() => { throw new Error('unsure'); }"),
      ].join('\n'),
    );
    const plugins = await scene.start();
    const dangerOf = async (tool: string, args: unknown): Promise<string | null | undefined> => {
      const verdict = await plugins.gateTool({ ...TOOL_CALL, tool, args });
      if (verdict.action !== 'pass') throw new MoiraiError('internal', 'it was blocked');
      return plugins
        .tools()
        .find(({ name }) => name === tool)
        ?.dangerous(verdict.args);
    };
    expect(await dangerOf('never', {})).toBeNull();
    expect(await dangerOf('always', {})).toBe('always');
    expect(await dangerOf('words', {})).toBe('burns the house');
    expect(await dangerOf('depends', { path: '/' })).toBe('removes /');
    expect(await dangerOf('depends', { path: '/tmp/x' })).toBeNull();
    expect(await dangerOf('broken', {})).toBe('broken');
    // Nobody asked the plugin: then a person is asked.
    expect(plugins.tools()[3]?.dangerous({ path: '/tmp/x' })).toBe('depends');
  });

  test.each([
    ["{ name: 'a b', description: '', inputSchema: {}, run: () => '' }", 'a name is letters'],
    ["{ name: 'a', inputSchema: {}, run: () => '' } as never", 'has no description'],
    ["{ name: 'a', description: '', run: () => '' } as never", 'has no inputSchema'],
    ["{ name: 'a', description: '', inputSchema: {} } as never", 'needs a function'],
  ])('that is not one (%s) refuses its plugin', async (tool, problem) => {
    scene.plugin('wrong', `ctx.tool(${tool});`);
    expect((await scene.start()).list()[0]?.problem).toContain(problem);
  });

  test('is registered in setup, or not at all', async () => {
    scene.plugin(
      'late',
      `ctx.command({ name: 'late', summary: '', run: () => {
        try { ctx.on('*', () => undefined); return 'taken'; } catch (error) { return String(error); } } });`,
    );
    const use = { name: 'late', args: '', conversation: chatConversation(1), session: null };
    expect(await (await scene.start()).commands()[0]?.run(use)).toContain('registered in setup(ctx)');
  });
});

test('a command knows who gave it, and its plugin knows its own facts', async () => {
  scene.plugin(
    'facts',
    `ctx.command({ name: 'who', takes: '[name]', summary: 'says who', run: (call) => JSON.stringify(call) });
    ctx.command({ name: 'facts', summary: 'says what is known', run: () =>
      JSON.stringify({ name: ctx.name, folder: ctx.folder.endsWith('plugins/facts'), home: ctx.home, config: ctx.config,
        keys: Object.keys(process.env).includes('SECRET'), moirai: process.env.MOIRAI_HOME }) });
    ctx.log.warn('a word of warning', { at: 'setup' });`,
    'version: 1.2\ndescription: knows things\nconfig: { colour: blue, deep: [1, 2] }',
  );
  const plugins = await scene.start({ environment: { SECRET: 'x', PATH: '/bin' } });
  const [who, facts] = plugins.commands();
  expect(who).toMatchObject({ name: 'who', takes: '[name]', summary: 'says who' });
  const conversation = chatConversation(7);
  const heard = JSON.parse((await who?.run({ name: 'who', args: 'me', conversation, session: { id: 'ses_7' } })) ?? '');
  expect(heard).toEqual({
    ...{
      name: 'who',
      args: 'me',
      platform: 'telegram',
      user_id: 'user-7',
      session_key: conversation.key,
      session_id: 'ses_7',
    },
  });
  const known = JSON.parse((await facts?.run({ name: 'facts', args: '', conversation, session: null })) ?? '');
  const config = { colour: 'blue', deep: [1, 2] };
  expect(known).toEqual({ name: 'facts', folder: true, home: scene.home, config, keys: false, moirai: scene.home });
  expect(plugins.list()).toMatchObject([{ version: '1.2', description: 'knows things', commands: ['who', 'facts'] }]);
  expect(scene.logged).toMatch(/"level":"warn".*"plugin":"facts".*"at":"setup".*a word of warning/);
});

describe('a memory in a plugin', () => {
  const MEMORY = `const kept: string[] = [];
    ctx.memoryProvider({
      name: 'book',
      initialize: ({ folder }) => note('initialized', folder),
      systemPromptBlock: ({ userId }) => 'known to ' + userId,
      prefetch: async (text) => (kept.length === 0 ? null : text + ': ' + kept.join()),
      syncTurn: (turn) => note('turns', [turn.text, turn.response]),
      onSessionEnd: (ended) => note('ends', [ended.session.id, ended.reason, ended.messages.map(({ text }) => text)]),
      remember: (fact) => void kept.push(fact),
      tools: [{ name: 'recall', description: 'recalls', inputSchema: {}, run: async (args, { scope }) =>
        JSON.stringify([args, scope.platform, kept]) }],
      shutdown: () => note('shutdown', 1),
    });
    ctx.command({ name: 'die', summary: '', run: () => process.exit(1) });`;

  const session: MemorySession = { ...chatConversation(1), id: 'ses_next' };

  test('is told and asked as any other, through its process', async () => {
    scene.plugin('memory', MEMORY);
    const plugins = await scene.start();
    const { engine, dispatcher, log } = scene.base;
    const manager = new MemoryManager({
      ...{
        providers: plugins.memoryProviders(),
        home: scene.home,
        store: engine.store,
        dispatcher,
        timers: processTimers,
      },
      log,
    });
    await manager.begin();
    expect(await manager.systemPromptBlock(session)).toBe('known to user-1');
    expect(await manager.prefetch('the key', session)).toBeNull();
    expect(await manager.remember('it is under the mat', session)).toBe(true);
    expect(await manager.prefetch('the key', session)).toContain('the key: it is under the mat');
    const [tool] = manager.tools;
    const scope = { platform: 'telegram', userId: 'user-1', sessionKey: session.key };
    expect(await tool?.run({ a: 1 }, { scope, sessionId: 's', signal })).toBe(
      '[{"a":1},"telegram",["it is under the mat"]]',
    );
    const id = await scene.base.talk(1);
    await engine.end(id, { reason: 'admin_close', trigger: 'api' });
    await until('the end was told', () => scene.lines('ends').length === 1);
    expect(scene.lines('ends')[0].slice(0, 2)).toEqual([id, 'admin_close']);
    expect(scene.lines('turns')).toEqual([['hi', 'ok']]);
    await manager.stop();
    expect(scene.lines('shutdown')).toEqual([1]);
    expect(scene.lines('initialized')).toHaveLength(1);
  });

  test('is initialized again in every new process, and what happened meanwhile waits for it', async () => {
    scene.plugin('memory', MEMORY);
    const plugins = await scene.start();
    const { engine, dispatcher, log } = scene.base;
    const [provider] = plugins.memoryProviders();
    const manager = new MemoryManager({
      ...{ providers: [provider as MemoryProvider], home: scene.home, store: engine.store, dispatcher },
      ...{ timers: processTimers, log },
    });
    await manager.begin();
    expect(await manager.systemPromptBlock(session)).toBe('known to user-1');
    const use = { name: 'die', args: '', conversation: chatConversation(1), session: null };
    await expect(plugins.commands()[0]?.run(use)).rejects.toThrow('died over it');
    const id = await scene.base.talk(1);
    await engine.end(id, { reason: 'admin_close', trigger: 'api' });
    await until('the end was told', () => scene.lines('ends').length === 1);
    expect(scene.lines('initialized')).toHaveLength(2);
    expect(await scene.base.subscriber('memory:book')).toMatchObject({ deadLetters: 0 });
    await plugins.reload('all');
    expect(await manager.remember('again', session)).toBe(true);
    expect(scene.lines('initialized')).toHaveLength(3);
    await manager.stop();
  });
});

describe('a platform in a plugin', () => {
  const PIGEON = (word: string): string =>
    `ctx.platform({
      name: 'pigeon',
      start: async (inbox, signal) => {
        note('starts', '${word}');
        note('order', 'start ${word}');
        signal.addEventListener('abort', () => note('stops', '${word}'));
        try {
          await inbox.receive({ chat_id: '5', user_id: 'u', text: 'coo', message_id: '${word}' });
          note('durable', '${word}');
        } catch (error) { note('refused', String(error)); }
        await new Promise(() => undefined);
      },
      send: (target, text) => { note('sent', [target, text]); return 'sent-1'; },
      stop: async () => {
        await new Promise((r) => setTimeout(r, 200));
        note('stopped', '${word}');
        note('order', 'stopped ${word}');
      },
    });`;

  const inboxOf = (receive: PluginInbox['receive'], changed = (): void => undefined): PluginInbox => ({
    receive,
    changed,
  });

  test('receives when the gateway is ready, is told when it is durable, and sends', async () => {
    scene.plugin('birds', PIGEON('a'));
    const arrived: Incoming[] = [];
    const durable = Promise.withResolvers<void>();
    const [platform] = (await scene.start()).platforms();
    await new Promise((next) => setTimeout(next, 100));
    expect(scene.lines('starts')).toEqual([]);
    expect(platform?.state.phase).toBe('stopped');
    await platform?.start(
      inboxOf((message) => {
        arrived.push(message);
        return durable.promise;
      }),
    );
    await until('it came', () => arrived.length === 1);
    expect(platform?.state).toMatchObject({ phase: 'connected', problem: null });
    expect(arrived).toMatchObject([
      {
        ...{ id: '5:a', messageId: 'a', place: { type: 'dm', chat: '5' }, from: { id: 'u', name: null, bot: false } },
        ...{ text: 'coo', addressed: true },
      },
    ]);
    await new Promise((next) => setTimeout(next, 100));
    expect(scene.lines('durable')).toEqual([]);
    durable.resolve();
    await until('it knows', () => scene.lines('durable').length === 1);
    const place = { type: 'dm', chat: '5' } as const;
    expect(await platform?.send(place, { text: 'coo yourself' }, signal)).toEqual({ messageId: 'sent-1' });
    expect(scene.lines('sent')).toEqual([[{ chat_id: '5', chat_type: 'dm', thread_id: null }, 'coo yourself']]);
  });

  test('is stopped in the old process before it is started in the new one', async () => {
    scene.plugin('birds', PIGEON('a'));
    const plugins = await scene.start();
    const [platform] = plugins.platforms();
    await platform?.start(inboxOf(async () => undefined));
    await until('it started', () => scene.lines('durable').length === 1);
    let changes = 0;
    plugins.onChange(() => changes++);
    scene.plugin('birds', PIGEON('b'));
    await plugins.reload();
    await until('it started again', () => scene.lines('durable').length === 2);
    expect(changes).toBe(1);
    expect(plugins.platforms()[0]).toBe(platform);
    expect(scene.lines('order')).toEqual(['start a', 'stopped a', 'start b']);
    expect([scene.lines('stops'), scene.lines('stopped')]).toEqual([['a'], ['a']]);
    await plugins.stop();
    expect(scene.lines('stopped')).toEqual(['a', 'b']);
  });

  test('is told when a message was not taken, and is started again when it fails', async () => {
    scene.plugin('birds', PIGEON('a'));
    scene.plugin(
      'ravens',
      "ctx.platform({ name: 'raven', start: () => { note('tries', 1); throw new Error('no wings'); }, send: () => 0 });",
    );
    const [pigeon, raven] = (await scene.start()).platforms();
    const refuse = async (): Promise<void> => {
      throw new MoiraiError('draining', 'the gateway takes nothing new');
    };
    const phases: (string | undefined)[] = [];
    await pigeon?.start(inboxOf(refuse));
    await raven?.start(inboxOf(refuse, () => phases.push(raven.state.phase)));
    await until('it was told', () => scene.lines('refused').length === 1);
    expect(scene.lines('refused')[0]).toContain('takes nothing new');
    await until('the other was started again', () => scene.lines('tries').length >= 2);
    expect(scene.logged).toContain('it could not start its platform raven: ravens: no wings');
    expect(phases.slice(0, 2)).toEqual(['degraded', 'connected']);
  });
});
