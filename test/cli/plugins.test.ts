import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliFixture, finish, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function plugin(name: string, manifest: string, module: string | null): void {
  const folder = join(cli.home, 'plugins', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'plugin.yaml'), manifest);
  if (module !== null) writeFileSync(join(folder, 'index.ts'), module);
}

test('a plugin that the running gateway refused is listed as refused, with the reason', async () => {
  plugin('good', 'description: does good', 'export function setup() {}');
  plugin('wrong', 'description: fails', 'export function setup() { throw new Error("no such harbour"); }');
  writeFileSync(join(cli.home, 'config.yaml'), 'gateway: { port: 0 }\nmodel: { provider: offline }\n');
  const gateway = cli.start(['gateway', 'run']);
  const listed = async () => (await cli.json('plugins', 'list')).data;
  await until('it is refused', async () => (await listed())[1].state === 'refused', 20_000);
  expect(await listed()).toMatchObject([
    { name: 'good', state: 'ready', problem: null },
    { name: 'wrong', state: 'refused', problem: expect.stringContaining('no such harbour') },
  ]);
  expect((await cli.moirai('plugins', 'list')).output).toMatch(/wrong +refused[\s\S]*no such harbour/);
  gateway.kill('SIGTERM');
  await finish(gateway);
});

test('plugins are listed with what is wrong with them, without a gateway', async () => {
  expect((await cli.moirai('plugins', 'list')).output).toMatch(/^No plugins in /);
  plugin('good', 'description: does good', 'export function setup() {}');
  plugin('off', 'enabled: false', 'export function setup() {}');
  plugin('empty', 'description: nothing', null);
  expect((await cli.json('plugins', 'list')).data).toMatchObject([
    { name: 'empty', state: 'bad', problem: expect.stringMatching(/index\.ts/) },
    { name: 'good', state: 'ready', description: 'does good', subscriber: 'plugin:good', lag: 0 },
    { name: 'off', state: 'disabled', problem: null },
  ]);
  expect((await cli.moirai('plugins', 'list')).output).toMatch(/^NAME +STATE/);
});
