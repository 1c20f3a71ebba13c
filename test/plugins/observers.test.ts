import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { observedUnder } from '../../src/extensions/plugins/names.ts';
import { chatConversation } from '../support/stores.ts';
import { Scene, TOOL_CALL, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

describe('a plugin hears', () => {
  test('events by their types and by names, with the old session before the new one', async () => {
    scene.plugin(
      'hears',
      `for (const name of ['on_session_start', 'on_session_finalize', 'on_session_reset', 'post_llm_call'] as const)
        ctx.on(name, (event) => note('named', { name, id: event.session_id, reason: event.reason ?? null }));
      ctx.on('session:*', (event) => note('sessions', event.type));
      ctx.on('*', (event) => note('all', event));`,
    );
    await scene.start();
    const old = await scene.base.talk(1);
    const { session: fresh } = await scene.base.engine.reset(chatConversation(1));
    await until('the reset was heard', () => scene.lines('named').some(({ name }) => name === 'on_session_reset'));
    expect(scene.lines('named')).toEqual([
      { name: 'on_session_start', id: old, reason: null },
      { name: 'post_llm_call', id: old, reason: null },
      { name: 'on_session_finalize', id: old, reason: 'user_reset' },
      { name: 'on_session_start', id: fresh.id, reason: null },
      { name: 'on_session_reset', id: fresh.id, reason: null },
    ]);
    expect(scene.lines('sessions')).toEqual(['session:start', 'session:end', 'session:start', 'session:reset']);
    expect(scene.lines('all')[0]).toMatchObject({ type: 'session:start', session_id: old, platform: 'telegram' });
    const patterns = (await scene.base.subscriber('plugin:hears'))?.patterns;
    expect(patterns).toContain('*');
  });

  test('of each session that a stop cut, as finalized by a shutdown', async () => {
    scene.plugin('cut', "ctx.on('on_session_finalize', (event) => note('cut', [event.session_id, event.reason]));");
    await scene.start();
    const { engine } = scene.base;
    const { session } = await engine.receive({
      conversation: chatConversation(1),
      text: 'hi',
      originRef: null,
      by: 'user',
    });
    await engine.interrupt({ sessionId: session.id, epoch: session.epoch }, 'restart');
    await until('it was heard', () => scene.lines('cut').length > 0);
    expect(scene.lines('cut')).toEqual([[session.id, 'shutdown']]);
  });

  test('what happened while the gateway was away', async () => {
    scene.plugin('away', "ctx.on('session:start', (event) => note('starts', event.session_id));");
    await scene.start();
    await scene.plugins?.stop();
    const id = await scene.base.talk(1);
    await scene.start();
    await until('it was heard', () => scene.lines('starts').length > 0);
    expect(scene.lines('starts')).toEqual([id]);
  });

  test('of tools that were run, as long as somebody tells', async () => {
    scene.plugin('tools', "ctx.on('post_tool_call', (done) => note('done', done));");
    const plugins = await scene.start();
    plugins.toolDone(TOOL_CALL, { ok: true, result: 'fine', duration_ms: 3 });
    await until('it was told', () => scene.lines('done').length > 0);
    expect(scene.lines('done')).toEqual([{ ...TOOL_CALL, ok: true, result: 'fine', duration_ms: 3 }]);
    expect(await scene.base.subscriber('plugin:tools')).toBeUndefined();
  });
});

describe('an observer that fails', () => {
  test('is called again, and those that took the event are not', async () => {
    scene.plugin(
      'flaky',
      `let tries = 0;
      ctx.on('session:start', () => note('first', 1));
      ctx.on('session:start', () => { note('second', 2); if (++tries < 3) throw new Error('not yet'); });
      ctx.on('on_session_start', () => note('third', 3));`,
    );
    const plugins = await scene.start({ maxAttempts: 5 });
    await scene.base.talk(1);
    await until('all took it', async () => plugins.list()[0]?.handled === 1);
    expect(['first', 'second', 'third'].map((file) => scene.lines(file).length)).toEqual([1, 3, 1]);
    expect(plugins.list()).toMatchObject([{ handled: 1, failed: 2, lastError: 'flaky: not yet' }]);
    expect(scene.logged).toContain('not yet');
  });

  test('for good becomes a dead letter, and the conversation goes on', async () => {
    scene.plugin(
      'never',
      "ctx.on('agent:*', (event) => { if (event.type === 'agent:start') throw new Error('no'); note('ends', 1); });",
    );
    await scene.start({ maxAttempts: 1 });
    await scene.base.talk(1);
    await until('the end was heard', () => scene.lines('ends').length === 1);
    expect(await scene.base.subscriber('plugin:never')).toMatchObject({ deadLetters: 1 });
  });

  test('because something else is down waits, and is not counted', async () => {
    scene.plugin(
      'waits',
      "let down = true; ctx.on('session:start', () => { if (down) { down = false; throw new Unavailable('down'); } note('up', 1); });",
    );
    await scene.start({ maxAttempts: 1 });
    await scene.base.talk(1);
    await until('it was heard', () => scene.lines('up').length === 1);
    expect(await scene.base.subscriber('plugin:waits')).toMatchObject({ deadLetters: 0 });
  });

  test('hangs until its timeout is told so by the signal, and tried again', async () => {
    scene.plugin(
      'hangs',
      `let first = true;
      ctx.on('session:start', async (_, signal) => {
        if (!first) return note('done', 1);
        first = false;
        await new Promise((_, stop) => signal.addEventListener('abort', () => { note('told', 1); stop(new Error('told')); }));
      });`,
      'timeout: 300ms',
    );
    await scene.start();
    await scene.base.talk(1);
    await until('it was done', () => scene.lines('done').length === 1);
    expect(scene.lines('told')).toHaveLength(1);
  });
});

describe('a name that nobody can hear', () => {
  test.each([
    ['session:edn', '"session:end"'],
    ['on_session_strat', '"on_session_start"'],
    ['on_session_end', '"agent:end" (or "post_llm_call", when it was answered)'],
    ['on_session_end', '"on_session_finalize" (or "session:end")'],
    ['pre_tool_call', 'ctx.gate("pre_tool_call"'],
    ['agents:*', '"agent:*"'],
  ])('%s is refused, with %s', (name, instead) => {
    expect(() => observedUnder(name)).toThrow(
      expect.objectContaining({ code: 'unknown_event', message: expect.stringContaining(instead) }),
    );
  });

  test('refuses its plugin, and no other', async () => {
    scene.plugin('a-wrong', "ctx.on('on_session_end' as never, () => undefined);");
    scene.plugin('b-right', "ctx.on('session:end', () => undefined);");
    const plugins = await scene.start();
    expect(plugins.list()).toMatchObject([
      { name: 'a-wrong', state: 'bad', problem: expect.stringMatching(/^a-wrong\/index.ts: .*on_session_finalize/) },
      { name: 'b-right', state: 'ready', problem: null, events: ['session:end'] },
    ]);
  });
});
