import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Plugins } from '../../src/extensions/plugins/plugins.ts';
import { MESSAGE, Scene, TOOL_CALL, TURN, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  return [await work, performance.now() - start];
}

describe('gates', () => {
  test('cost nothing where there are no plugins', async () => {
    const plugins = await scene.start();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'hi' });
    expect(await plugins.gateTool(TOOL_CALL)).toEqual({ action: 'pass', args: TOOL_CALL.args });
    expect(await plugins.beforeModel(TURN)).toBeNull();
    plugins.toolDone(TOOL_CALL, { ok: true, result: '', duration_ms: 1 });
    expect([plugins.tools(), plugins.commands(), plugins.memoryProviders(), plugins.platforms()]).toEqual([
      [],
      [],
      [],
      [],
    ]);
    expect(plugins.list()).toEqual([]);
  });

  test('are asked in the order of the plugins, and each sees what the one before made of it', async () => {
    const add = (word: string) => `(asked) => ({ action: 'rewrite', text: asked.text + ' ${word}' })`;
    scene.plugin('b', `ctx.gate('pre_gateway_dispatch', ${add('b')});`);
    scene.plugin(
      'a',
      `ctx.gate('pre_gateway_dispatch', ${add('a1')}); ctx.gate('pre_gateway_dispatch', ${add('a2')});`,
    );
    scene.plugin('c', "ctx.gate('pre_gateway_dispatch', (asked) => { note('asked', asked); });");
    const plugins = await scene.start();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'hi a1 a2 b' });
    expect(scene.lines('asked')).toEqual([{ ...MESSAGE, text: 'hi a1 a2 b' }]);
  });

  test('may skip a message, and then nobody else is asked', async () => {
    scene.plugin('a', "ctx.gate('pre_gateway_dispatch', async () => ({ action: 'skip', reason: 'spam' }));");
    scene.plugin('b', "ctx.gate('pre_gateway_dispatch', () => { note('asked', 1); });");
    const plugins = await scene.start();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'skip', reason: 'spam', plugin: 'a' });
    expect(scene.lines('asked')).toEqual([]);
  });

  test('may change what a tool is run with, or keep it from being run', async () => {
    scene.plugin(
      'careful',
      `ctx.gate('pre_tool_call', ({ tool, args }) => {
        if (tool === 'rm') return { action: 'block', reason: 'not here' };
        return { action: 'rewrite', args: { ...(args as object), safe: true } };
      });`,
    );
    const plugins = await scene.start();
    expect(await plugins.gateTool(TOOL_CALL)).toEqual({ action: 'pass', args: { command: 'ls', safe: true } });
    const blocked = { action: 'block', reason: 'not here', plugin: 'careful' };
    expect(await plugins.gateTool({ ...TOOL_CALL, tool: 'rm' })).toEqual(blocked);
  });

  test('may add to what the model reads', async () => {
    scene.plugin('b', "ctx.gate('pre_llm_call', async ({ text }) => ({ context: 'about ' + text }));");
    scene.plugin('a', "ctx.gate('pre_llm_call', () => ({ context: 'first' }));");
    scene.plugin('c', "ctx.gate('pre_llm_call', () => { throw new Error('no'); });");
    const plugins = await scene.start();
    expect(await plugins.beforeModel(TURN)).toBe('first\n\nabout hi');
  });
});

const DECLARED = 'gates: { pre_tool_call: { on_failure: closed } }';

describe('a gate that', () => {
  test('is late lets pass, or does not, as it said', async () => {
    const late = '() => new Promise(() => undefined), { timeout: 200, onFailure:';
    scene.plugin('open', `ctx.gate('pre_gateway_dispatch', ${late} 'open' });`);
    scene.plugin('shut', `ctx.gate('pre_tool_call', ${late} 'closed' });`, DECLARED);
    const plugins = await scene.start();
    const [passed, ms] = await timed(plugins.gateDispatch(MESSAGE));
    expect(passed).toEqual({ action: 'pass', text: 'hi' });
    expect(ms).toBeGreaterThan(190);
    const reason = expect.stringMatching(/pre_tool_call of shut did not let it pass: .* within 200 ms/);
    expect(await plugins.gateTool(TOOL_CALL)).toEqual({ action: 'block', reason, plugin: 'shut' });
  });

  test('throws, or answers what nobody understands, lets pass or does not, as it said', async () => {
    scene.plugin('a', "ctx.gate('pre_gateway_dispatch', () => { throw new Error('no'); });");
    scene.plugin('b', "ctx.gate('pre_gateway_dispatch', () => ({ action: 'perhaps' }) as never);");
    scene.plugin(
      'c',
      "ctx.gate('pre_tool_call', () => { throw new Error('sick'); }, { onFailure: 'closed' });",
      DECLARED,
    );
    const plugins = await scene.start();
    expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'hi' });
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({
      action: 'block',
      reason: expect.stringContaining('sick'),
    });
  });

  test('has a process that is blocked costs its deadline once, and not every message', async () => {
    scene.plugin(
      'blocked',
      `const { existsSync } = await import('node:fs');
      ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: 'asked' }));
      ctx.on('session:start', () => { note('began', 1); while (!existsSync(ctx.home + '/go')); });`,
      'gates: {timeout: 1s}',
    );
    const plugins = await scene.start();
    await scene.base.talk(1);
    await until('it blocks', () => scene.lines('began').length === 1);
    const [, first] = await timed(plugins.gateDispatch(MESSAGE));
    expect(first).toBeGreaterThan(990);
    // One after the other: were each to wait, it would take the whole time of the test.
    for (let i = 0; i < 50; i++) expect(await plugins.gateDispatch(MESSAGE)).toMatchObject({ text: 'hi' });
    writeFileSync(join(scene.home, 'go'), '');
    await until('it is asked again', async () => {
      const verdict = await plugins.gateDispatch(MESSAGE);
      return verdict.action === 'pass' && verdict.text === 'asked';
    });
  });

  test('is closed stays closed while its process is away', async () => {
    scene.plugin(
      'guard',
      `ctx.gate('pre_gateway_dispatch', ({ text }) => { if (text === 'die') process.exit(1); }, { onFailure: 'closed' });`,
      'gates: { pre_gateway_dispatch: { on_failure: closed } }',
    );
    const plugins = await scene.start();
    expect(await plugins.gateDispatch(MESSAGE)).toMatchObject({ action: 'pass' });
    expect(await plugins.gateDispatch({ ...MESSAGE, text: 'die' })).toMatchObject({ action: 'skip', plugin: 'guard' });
    const away = await plugins.gateDispatch(MESSAGE);
    expect(away).toMatchObject({ action: 'skip', reason: expect.stringContaining('is being started again') });
    await until('it is back', async () => (await plugins.gateDispatch(MESSAGE)).action === 'pass');
  });

  test.each([
    ["ctx.gate('pre_tool_cal' as never, () => undefined);", 'did you mean the gate "pre_tool_call"?'],
    ["ctx.gate('post_tool_call' as never, () => undefined);", 'register it with ctx.on("post_tool_call"'],
    ["ctx.gate('pre_llm_call', () => undefined, { onFailure: 'closed' });", 'cannot be closed'],
    ["ctx.gate('pre_tool_call', () => undefined, { timeout: 0 });", 'from 1 to 60000 milliseconds'],
    ["ctx.gate('pre_tool_call', 5 as never);", 'needs a function'],
  ])('is not one (%s) refuses its plugin', async (setup, problem) => {
    scene.plugin('wrong', setup);
    expect((await scene.start()).list()).toMatchObject([{ state: 'bad', problem: expect.stringContaining(problem) }]);
  });
});

describe('a gate that plugin.yaml declares', () => {
  const CLOSED = 'gates: { timeout: 1s, pre_tool_call: { on_failure: closed }, pre_gateway_dispatch: {} }';
  const CODE = "ctx.gate('pre_tool_call', () => undefined); ctx.gate('pre_gateway_dispatch', () => undefined);";

  test.each([
    ['does not load', { 'index.ts': 'export function setup( {' }, 'SyntaxError'],
    ['exits while it is loaded', { 'index.ts': 'process.exit(3);' }, 'it exited with 3'],
    ['registers none', { 'index.ts': 'export function setup() {}' }, 'declares the gate "pre_tool_call"'],
    ['is away', { 'plugin.yaml': `${CLOSED}\nmain: away.ts` }, 'there is no such file'],
    ['has another mistake in its plugin.yaml', { 'plugin.yaml': `${CLOSED}\nenabled: perhaps` }, 'enabled is true'],
    ['has a plugin.yaml that is no YAML', { 'plugin.yaml': `${CLOSED}\na: [` }, 'it is no YAML'],
  ])('stays closed when its code %s', async (_, files, why) => {
    scene.plugin('guard', CODE, CLOSED, files);
    const plugins = await scene.start();
    const blocked = { action: 'block', plugin: 'guard', reason: expect.stringContaining(why) };
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject(blocked);
    scene.plugin('guard', CODE, CLOSED);
    await until('it passes again', async () => (await plugins.gateTool(TOOL_CALL)).action === 'pass');
  });

  test('lets pass when it is open, or its plugin is turned off', async () => {
    scene.plugin('open', CODE, 'gates: { pre_tool_call: {} }', { 'index.ts': 'throw 1;' });
    scene.plugin('off', CODE, `${CLOSED}\nenabled: false`);
    const plugins = await scene.start();
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({ action: 'pass' });
  });

  test('is asked, and not passed over, by what comes while its plugin is loaded for the first time', async () => {
    const slow = 'await new Promise((next) => setTimeout(next, 2500));';
    scene.plugin('slow', `${slow} ${CODE}`, CLOSED);
    const plugins = await Plugins.start({ ...scene.options });
    scene.plugins = plugins;
    expect(plugins.list()).toMatchObject([{ state: 'loading', gates: ['pre_tool_call', 'pre_gateway_dispatch'] }]);
    const [dispatched, ms] = await timed(plugins.gateDispatch(MESSAGE));
    expect(dispatched).toMatchObject({ action: 'pass' });
    expect(ms).toBeLessThan(2400);
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({ action: 'pass' });
    expect(plugins.list()).toMatchObject([{ state: 'ready' }]);
  });

  test('has to be declared if its code closes it: till then its plugin is refused, and the gate is closed', async () => {
    const code = "ctx.gate('pre_tool_call', () => undefined, { onFailure: 'closed' });";
    scene.plugin('undeclared', code);
    const plugins = await scene.start();
    const declaration = expect.stringContaining('plugin.yaml needs gates: {pre_tool_call: {on_failure: closed}}');
    expect(plugins.list()).toMatchObject([{ state: 'bad', problem: declaration }]);
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({ action: 'block', reason: declaration });
    scene.plugin('undeclared', code, 'gates: { pre_tool_call: { on_failure: closed } }');
    await until('it passes', async () => (await plugins.gateTool(TOOL_CALL)).action === 'pass');
  });

  test('stays closed when its code hangs while it is loaded', async () => {
    scene.plugin('hangs', '', CLOSED, { 'index.ts': 'for (;;);' });
    const plugins = await scene.start({ limits: { loadMs: 1000 } });
    expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({
      action: 'block',
      plugin: 'hangs',
      reason: expect.stringMatching(/^pre_tool_call of hangs did not let it pass: .*1000 ms/),
    });
    expect(await plugins.gateDispatch(MESSAGE)).toMatchObject({ action: 'pass' });
  });

  test('stays closed when its code hangs each time it is asked', async () => {
    const spins = "ctx.gate('pre_tool_call', () => { for (;;); }); ctx.gate('pre_gateway_dispatch', () => undefined);";
    scene.plugin('hangs', spins, CLOSED);
    const plugins = await scene.start();
    for (let i = 0; i < 3; i++) expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({ action: 'block' });
  });

  test.each([
    ['gates: { pre_tool_cal: { on_failure: closed } }', 'did you mean the gate "pre_tool_call"?'],
    ['gates: { pre_tool_call: { on_failure: shut } }', 'gates.pre_tool_call.on_failure is open or closed'],
    ['gates: { pre_llm_call: { on_failure: closed } }', 'gates.pre_llm_call only adds context'],
    ['gates: { pre_tool_call: { timeout: 2h } }', 'gates.pre_tool_call.timeout is from 1ms to 60s'],
  ])('wrongly (%s) refuses its plugin', async (manifest, problem) => {
    scene.plugin('wrong', CODE, manifest);
    expect((await scene.start()).list()).toMatchObject([{ state: 'bad', problem: expect.stringContaining(problem) }]);
  });
});
