import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../hooks/scene.ts';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;

afterEach(() => gateway.close());

function plugin(name: string, code: string, manifest = ''): void {
  const folder = join(gateway.home, 'plugins', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'plugin.yaml'), manifest);
  writeFileSync(join(folder, 'index.ts'), code);
}

async function checks(): Promise<Record<string, { ok: boolean; detail: string }>> {
  const response = await fetch(`${gateway.url}/ready`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { checks: Record<string, { ok: boolean; detail: string }> }).checks;
}

async function lagOf(subscriber: string): Promise<number | undefined> {
  const response = await fetch(`${gateway.url}/v1/subscribers`);
  const { data } = (await response.json()) as { data: { name: string; lag: number }[] };
  return data.find(({ name }) => name === subscriber)?.lag;
}

const OFFLINE = { model: { provider: 'offline' } };

describe('a gateway', () => {
  test('is ready and answers while a plugin hangs at its import', async () => {
    gateway = new GatewayProcess(OFFLINE);
    plugin('hangs', 'for (;;);');
    plugin(
      'works',
      `import type { PluginContext } from 'moirai';
      export function setup(ctx: PluginContext) {
        ctx.command({ name: 'work', summary: 'works', run: () => 'done' });
      }`,
    );
    await gateway.start();
    const hanging = { ok: false, detail: expect.stringContaining('hangs is loading') };
    expect((await checks()).plugins).toMatchObject(hanging);
    await until('the other plugin is loaded', async () => (await gateway.chat({ text: '/work' })).reply === 'done');
    expect((await checks()).plugins).toMatchObject(hanging);
  });

  test('starts with a memory whose plugin is broken, says so, and keeps its events until it is mended', async () => {
    gateway = new GatewayProcess({ ...OFFLINE, memory: { provider: 'book', review_every: 0 } });
    plugin('memory', 'export function setup( {');
    await gateway.start();
    expect(await gateway.chat({ text: 'hello' })).toMatchObject({ status: 200 });
    await until('the plugin was refused', async () => /memory is bad/.test((await checks()).plugins?.detail ?? ''));
    expect((await checks()).memory).toMatchObject({ ok: false, detail: expect.stringContaining('the memory "book"') });
    const missing = expect.stringContaining('no plugin that is loaded brings the memory "book"');
    expect(gateway.started.memory).toEqual(missing);
    const { output } = await gateway.moirai('doctor', '--json');
    const found = (JSON.parse(output) as { checks: object[] }).checks;
    expect(found).toContainEqual({ check: 'gateway:memory', status: 'warn', message: missing });
    await until('its events wait', async () => ((await lagOf('memory:book')) ?? 0) > 0);
    plugin(
      'memory',
      `import { appendFileSync } from 'node:fs';
      import type { PluginContext } from 'moirai';
      export function setup(ctx: PluginContext) {
        const note = () => appendFileSync(ctx.home + '/heard', 'x');
        ctx.memoryProvider({ name: 'book', syncTurn: note, onSessionEnd: note });
      }`,
    );
    await until('they were delivered', async () => (await lagOf('memory:book')) === 0, 40_000);
    expect((await checks()).memory).toBeUndefined();
  }, 60_000);

  test('refuses to start with a memory that no plugin can bring', async () => {
    gateway = new GatewayProcess({ ...OFFLINE, memory: { provider: 'book' } });
    await expect(gateway.start()).rejects.toThrow(/exited with 78: [\s\S]*no memory is called/);
  });
});
