import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { MemoryProvider, MemorySession } from '../../src/memory/provider.ts';
import { chatConversation } from '../support/stores.ts';
import { Scene, until } from './scene.ts';

const page = readFileSync(new URL('../../docs/memory.md', import.meta.url), 'utf8');

function sessionOf(chat: number): MemorySession {
  const { key, userId } = chatConversation(chat);
  return { id: `ses_next_${chat}_${Math.random()}`, key, kind: 'chat', platform: 'telegram', userId };
}

test('the diary in docs/memory.md keeps each session once, and shows it to whom it belongs', async () => {
  const [, code = ''] = /^```ts diary\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'moirai-diary-'));
  writeFileSync(join(folder, 'diary.mts'), code);
  const scene = await Scene.open();
  try {
    const { diary } = (await import(/* @vite-ignore */ join(folder, 'diary.mts'))) as { diary(): MemoryProvider };
    const manager = await scene.remember([diary()]);
    for (const chat of [1, 2]) {
      const id = await scene.talk(`thread number ${chat}`, chatConversation(chat));
      await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    }
    const shown = (chat: number) => manager.systemPromptBlock(sessionOf(chat));
    await until('both are kept', async () => (await shown(1)) !== null && (await shown(2)) !== null);
    await scene.engine.store.write('replay', { subscriber: 'memory:diary', fromSeq: 0 });
    await until('all was told', async () => (await scene.subscriber('memory:diary'))?.lag === 0);
    expect(await shown(1)).toMatch(/^Sessions before this one:\nses_\w+:\d+ admin_close: thread number 1\n$/);
    expect(await shown(2)).toContain('thread number 2');
    expect(await shown(3)).toBeNull();
  } finally {
    await scene.close();
    rmSync(folder, { recursive: true });
  }
});

test('docs/memory.md names every part of a provider, and the limits of the files', () => {
  const source = readFileSync(new URL('../../src/memory/provider.ts', import.meta.url), 'utf8');
  const [, body = ''] = /export interface MemoryProvider \{([\s\S]*?)^\}/m.exec(source) ?? [];
  const parts = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:]/gm)].map(([, name]) => name ?? '');
  expect(parts.length).toBeGreaterThan(10);
  for (const part of parts.filter((name) => name !== 'name'))
    expect(page).toMatch(new RegExp(`^\\| \`${part}\\b`, 'm'));
  const files = readFileSync(new URL('../../src/memory/providers/files.ts', import.meta.url), 'utf8');
  expect(files).toContain('{ shared: 4000, notes: 2500, user: 1500 }');
});
