import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as pluginApi from '../../src/extensions/plugins/api.ts';
import * as publicApi from '../../src/index.ts';
import { chatConversation } from '../support/stores.ts';
import { MESSAGE, Scene, TOOL_CALL, until } from './scene.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const page = read('docs/plugins.md');
const FILES = /^`plugins\/([\w-]+)\/([\w.]+)`\n\n```\w+\n([\s\S]*?)^```$/gm;
const CONTEXT = { sessionId: 's', turnId: 't', platform: 'p', userId: null, signal: new AbortController().signal };

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

test('the plugin in docs/plugins.md does what the page says', async () => {
  const files = [...page.matchAll(FILES)].map(([, , file = '', text = '']) => [file, text]);
  expect(files).toHaveLength(2);
  scene.plugin('greeter', '', '', Object.fromEntries(files));
  const plugins = await scene.start();
  await scene.base.talk(1);
  await until('it was heard', () => plugins.list()[0]?.handled === 1);
  const [greet] = plugins.commands();
  const use = { name: 'greet', args: '', conversation: chatConversation(1), session: null };
  expect(await greet?.run(use)).toBe('Ahoy! 1 came so far.');
  const skipped = { action: 'skip', reason: 'no passwords here', plugin: 'greeter' };
  expect(await plugins.gateDispatch({ ...MESSAGE, text: 'my password' })).toEqual(skipped);
  expect(await plugins.gateDispatch(MESSAGE)).toEqual({ action: 'pass', text: 'hi' });
});

test('the logbook of the examples keeps every session once', async () => {
  const folder = fileURLToPath(new URL('../../examples/plugins/logbook', import.meta.url));
  cpSync(folder, join(scene.home, 'plugins/logbook'), { recursive: true });
  const plugins = await scene.start();
  expect(plugins.list()).toMatchObject([
    { state: 'ready', version: '1.0.0', events: ['session:end', 'session:resume_pending'] },
  ]);
  const [tool] = plugins.tools();
  expect(await tool?.run({}, CONTEXT)).toBe('The logbook is empty.');
  const id = await scene.base.talk(1);
  await scene.base.engine.end(id, { reason: 'admin_close', trigger: 'api' });
  await until('it was written', async () => (await tool?.run({}, CONTEXT))?.includes(id) ?? false);
  await scene.base.engine.store.write('replay', { subscriber: 'plugin:logbook', fromSeq: 0 });
  await until('it came again', () => (plugins.list()[0]?.handled ?? 0) >= 2);
  const use = { name: 'logbook', args: '3', conversation: chatConversation(1), session: null };
  expect(await plugins.commands()[0]?.run(use)).toMatch(new RegExp(`^\\S+ ${id} admin_close$`));
  const blocked = { action: 'block', plugin: 'logbook' };
  expect(await plugins.gateTool({ ...TOOL_CALL, args: { path: 'plugins/logbook/logbook.jsonl' } })).toMatchObject(
    blocked,
  );
  expect(await plugins.gateTool(TOOL_CALL)).toMatchObject({ action: 'pass' });
});

test('docs/plugins.md names every part of ctx, every name, every gate and every key of plugin.yaml', () => {
  const api = read('src/extensions/plugins/api.ts');
  const partsOf = (name: string): string[] => {
    const [, body = ''] = new RegExp(`export interface ${name}\\S* \\{([\\s\\S]*?)^\\}`, 'm').exec(api) ?? [];
    return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[<(:?]/gm)].map(([, part]) => part ?? '');
  };
  expect(partsOf('PluginContext').length).toBeGreaterThan(10);
  for (const part of partsOf('PluginContext')) expect(page).toContain(`\`ctx.${part}`);
  for (const name of [...partsOf('NamedEvents'), ...partsOf('Gates')]) expect(page).toContain(`| \`${name}\` |`);
  const [, keys = ''] = /## plugin.yaml\n([\s\S]*?)\n## /.exec(page) ?? [];
  for (const key of ['name', 'description', 'version', 'enabled', 'main', 'config', 'timeout', 'gates', 'memory']) {
    expect(keys).toContain(`\`${key}\``);
  }
});

test('what a plugin imports from moirai in its process is what the package exports', () => {
  expect(Object.keys(publicApi).toSorted()).toEqual(Object.keys(pluginApi).toSorted());
  const { exports } = JSON.parse(read('package.json')) as {
    exports: Record<string, { types: string; default: string }>;
  };
  expect(exports['.']).toEqual({ types: './dist/index.d.ts', default: './dist/index.js' });
});
