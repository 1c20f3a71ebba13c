import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MemoryScope } from '../../src/memory/provider.ts';
import { FilesMemory } from '../../src/memory/providers/files.ts';
import { MemoryFile } from '../../src/memory/providers/memory-file.ts';
import { codeOf } from '../store/contract/code-of.ts';

const ADA: MemoryScope = { platform: 'telegram', userId: 'ada', sessionKey: 'agent:main:telegram:dm:ada' };
const BOB: MemoryScope = { platform: 'telegram', userId: 'bob', sessionKey: 'agent:main:telegram:dm:bob' };
const SHARED: MemoryScope = { platform: 'telegram', userId: 'ada', sessionKey: 'agent:main:telegram:group:7' };

describe('memory in files', () => {
  let folder: string;
  let memory: FilesMemory;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'moirai-files-'));
    memory = new FilesMemory({ notes: 100, user: 60 });
    await memory.initialize({ folder });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function use(args: unknown, scope = ADA): Promise<string> {
    const [tool] = memory.tools;
    if (tool === undefined) throw new TypeError('no tool');
    return tool.run(args, { scope, sessionId: 'ses_1', signal: new AbortController().signal });
  }

  test('is added to, changed and removed by the model, and shown in the next prompt', async () => {
    expect(await memory.systemPromptBlock(ADA)).toBeNull();
    await use({ action: 'add', target: 'user', text: 'likes\n- linen' });
    await use({ action: 'add', target: 'notes', text: 'the loom squeaks' });
    await use({ action: 'add', target: 'notes', text: 'the wheel turns' });
    await use({ action: 'replace', target: 'notes', match: 'loom', text: 'the loom is mended' });
    await use({ action: 'remove', target: 'notes', match: 'wheel' });
    const block = await memory.systemPromptBlock(ADA);
    expect(block).toContain('- the loom is mended');
    expect(block).toContain('- likes - linen');
    expect(block).not.toContain('wheel');
  });

  test('of one person is never shown to another, nor in a group they share; the operator speaks to all', async () => {
    writeFileSync(join(folder, 'MEMORY.md'), 'The shop opens at nine.\n');
    await use({ action: 'add', target: 'user', text: 'a secret of Ada' });
    await use({ action: 'add', target: 'notes', text: 'said in the group' }, SHARED);
    expect(await memory.systemPromptBlock(ADA)).toMatch(/opens at nine[\s\S]*secret of Ada/);
    expect(await memory.systemPromptBlock({ ...ADA, sessionKey: 'agent:main:telegram:dm:ada' })).toContain('secret');
    for (const scope of [BOB, SHARED, { ...ADA, platform: 'discord' }, { ...ADA, userId: null }]) {
      expect(await memory.systemPromptBlock(scope)).toMatch(/opens at nine/);
      expect(await memory.systemPromptBlock(scope)).not.toMatch(/secret/);
    }
    expect(await memory.systemPromptBlock(ADA)).not.toMatch(/said in the group/);
    expect(readFileSync(join(folder, 'MEMORY.md'), 'utf8')).toBe('The shop opens at nine.\n');
  });

  test('is bounded: what does not fit is refused, and says what is there', async () => {
    await use({ action: 'add', target: 'notes', text: 'x'.repeat(60) });
    const refused = use({ action: 'add', target: 'notes', text: 'y'.repeat(60) });
    await expect(refused).rejects.toMatchObject({ code: 'memory_full', message: expect.stringContaining('xxx') });
    await use({ action: 'replace', target: 'notes', match: 'xxx', text: 'short' });
    await use({ action: 'add', target: 'notes', text: 'y'.repeat(60) });
    expect((await memory.systemPromptBlock(ADA))?.length).toBeLessThan(200);
  });

  test('that a person made too long is cut in the prompt, and may be shortened', async () => {
    await use({ action: 'add', target: 'notes', text: 'one' });
    const [user] = readdirSync(join(folder, 'users'));
    const path = join(folder, 'users', user ?? '', 'MEMORY.md');
    writeFileSync(path, Array.from({ length: 50 }, (_, i) => `- entry ${i}.`).join('\n'));
    expect((await memory.systemPromptBlock(ADA))?.length).toBeLessThan(200);
    await use({ action: 'remove', target: 'notes', match: 'entry 7.' });
    expect(readFileSync(path, 'utf8')).not.toContain('entry 7.');
    expect(statSync(path).mode & 0o077).toBe(0);
  });

  test('is opened again only when the file is another one than before', async () => {
    const path = join(folder, 'MEMORY.md');
    const write = (text: string, at: Date): void => {
      writeFileSync(path, text);
      utimesSync(path, at, at);
    };
    const [then, later] = [new Date(Date.now() - 60_000), new Date(Date.now() - 30_000)];
    write('open at nine', then);
    expect(await memory.systemPromptBlock(ADA)).toContain('open at nine');
    // The same file to whoever only looks at it: nobody opens it, so nobody sees the change.
    write('shut at nine', then);
    expect(await memory.systemPromptBlock(ADA)).toContain('open at nine');
    write('shut at nine', later);
    expect(await memory.systemPromptBlock(ADA)).toContain('shut at nine');
    rmSync(path);
    expect(await memory.systemPromptBlock(ADA)).toBeNull();
  });

  test('that is being changed is read each time, since two changes may bear the same time', async () => {
    const now = new Date();
    for (const text of ['open at nine', 'shut at nine']) {
      writeFileSync(join(folder, 'MEMORY.md'), text);
      utimesSync(join(folder, 'MEMORY.md'), now, now);
      expect(await memory.systemPromptBlock(ADA)).toContain(text);
    }
  });

  test('refuses what names no entry, or more than one, or nothing', async () => {
    await use({ action: 'add', target: 'notes', text: 'the loom' });
    await use({ action: 'add', target: 'notes', text: 'the wheel' });
    expect(await codeOf(use({ action: 'remove', target: 'notes', match: 'the' }))).toBe('memory_entry');
    expect(await codeOf(use({ action: 'remove', target: 'notes', match: 'shears' }))).toBe('memory_entry');
    expect(await codeOf(use({ action: 'remove', target: 'notes' }))).toBe('bad_input');
    expect(await codeOf(use({ action: 'add', target: 'notes', text: ' ' }))).toBe('bad_input');
    expect(await codeOf(use({ action: 'burn', target: 'notes' }))).toBe('tool_failed');
  });

  test('loses none of many changes at once', async () => {
    const file = new MemoryFile(join(folder, 'many.md'), 10_000);
    await Promise.all(Array.from({ length: 50 }, (_, i) => file.add(`entry ${i}`)));
    expect((await file.text()).split('\n')).toHaveLength(50);
  });

  test('is whole after a kill in the middle of a change', { timeout: 30_000 }, async () => {
    const program = fileURLToPath(new URL('./processes/scribe.ts', import.meta.url));
    mkdirSync(join(folder, 'killed'));
    const path = join(folder, 'killed', 'MEMORY.md');
    const seen = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(child.stdout, 'data');
      await new Promise((next) => setTimeout(next, 7 * round));
      child.kill('SIGKILL');
      await once(child, 'exit');
      const text = readFileSync(path, 'utf8');
      expect(text).toMatch(/^- (a{50000}|b{50000})\n$/);
      seen.add(text);
    }
    expect(seen.size).toBeGreaterThan(0);
  });
});
