import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { webhookSubscriber } from '../../src/extensions/webhooks/webhook.ts';
import { hasPython } from '../support/python.ts';
import { Scene, until } from './scene.ts';

const page = readFileSync(new URL('../../docs/hooks.md', import.meta.url), 'utf8');
const FILES = /^`hooks\/([\w-]+)\/([\w.]+)`\n\n```\w+\n([\s\S]*?)^```$/gm;

test('the hooks in docs/hooks.md do what the page says', async () => {
  const python = hasPython();
  const scene = await Scene.open();
  try {
    const files = [...page.matchAll(FILES)].map(([, name = '', file = '', text = '']) => ({ name, file, text }));
    expect(files).toHaveLength(6);
    for (const { name, file, text } of files) scene.hook(name, { [file]: text });
    await scene.start();
    expect(scene.hooks?.list().filter(({ state }) => state !== 'ready')).toHaveLength(python ? 0 : 1);
    const id = await scene.talk(7);
    await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const wanted = {
      'ledger.txt': `${id} admin_close\n`,
      ...(python ? { 'greeted.txt': 'telegram user-7\n' } : {}),
      'count.txt': 'agent:start\nagent:end\n',
    };
    for (const [file, text] of Object.entries(wanted)) {
      await until(`${file} is written`, () => contentOf(join(scene.home, file)) === text);
    }
  } finally {
    await scene.close();
  }
});

test('the receiver in docs/hooks.md takes what a webhook sends, and nothing else', async () => {
  const [, code = ''] = /^```ts receiver\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'moirai-receiver-'));
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'receiver.mts'), code);
  const scene = await Scene.open();
  const { startReceiver } = (await import(/* @vite-ignore */ join(folder, 'receiver.mts'))) as {
    startReceiver(secret: string, take: (event: { type: string }) => void): Server;
  };
  const secret = `whsec_${Buffer.from('only the two of us know this').toString('base64')}`;
  const heard: string[] = [];
  const server = startReceiver(secret, ({ type }) => heard.push(type));
  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const settings = { timeoutMs: 5000, maxAttempts: 1, log: scene.log };
    const events = ['session:start', 'agent:start'];
    await scene.dispatcher.subscribe(webhookSubscriber({ name: 'known', url, secret, events }, settings));
    const forged = { name: 'forged', url, secret: 'whsec_Zm9yZ2Vk', events };
    await scene.dispatcher.subscribe(webhookSubscriber(forged, settings));
    await scene.talk(1);
    await until('the forged ones are dead', async () => (await scene.subscriber('webhook:forged'))?.deadLetters === 2);
    await until('the others arrived', () => heard.length === 2);
    expect(heard).toEqual(events);
  } finally {
    server.close();
    await scene.close();
    rmSync(folder, { recursive: true });
  }
});

function contentOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
