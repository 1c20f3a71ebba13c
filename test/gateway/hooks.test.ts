import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;

afterEach(() => gateway.close());

test('a hook of the home hears of sessions, also of an end written just before the gateway was killed', async () => {
  gateway = new GatewayProcess();
  const folder = join(gateway.home, 'hooks', 'diary');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'HOOK.yaml'), 'name: diary\nevents: ["session:*", "gateway:startup"]\n');
  writeFileSync(join(folder, 'handler.sh'), 'read -r event\necho "$MOIRAI_EVENT $event" >> ../../diary.txt\n', {
    mode: 0o700,
  });
  await gateway.start();
  await gateway.chat({ text: 'hello', conversation: 'c' });
  await gateway.chat({ text: '/new', conversation: 'c' });
  await gateway.end('SIGKILL');
  await gateway.start();
  const lines = (): string[] => readFileSync(join(gateway.home, 'diary.txt'), 'utf8').trim().split('\n');
  const ofSessions = (): string[] => lines().filter((line) => line.startsWith('session:'));
  await expect.poll(() => new Set(ofSessions()).size, { timeout: 20_000 }).toBe(4);
  const types = [...new Set(ofSessions())].map((line) => line.split(' ')[0]);
  expect(types).toEqual(['session:start', 'session:end', 'session:start', 'session:reset']);
  expect(lines().filter((line) => line.startsWith('gateway:startup')).length).toBeGreaterThanOrEqual(1);
});
