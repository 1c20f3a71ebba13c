import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FileToKeep, keepToSend, readToSend, refusalOf } from './sent-files.ts';

const abilities = { files: { in: true, out: true, maxBytes: 100 } } as Parameters<typeof refusalOf>[0];

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-sent-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function keep(name: string, changes: Partial<FileToKeep> = {}) {
  const rest = { workspace: join(folder, 'workspace'), maxFolderBytes: 1_000_000, refusal: () => null };
  return keepToSend({ source: join(folder, name), ...rest, ...changes });
}

test('what is sent is the file as it was when it was given, whatever becomes of it', async () => {
  writeFileSync(join(folder, 'chart.png'), 'first');
  const kept = await keep('chart.png');
  writeFileSync(join(folder, 'chart.png'), 'second');
  const [sent] = await readToSend([kept], abilities, 'harbour');
  expect(sent).toMatchObject({ kind: 'image', name: 'chart.png', mime: 'image/png' });
  expect(Buffer.from(sent!.bytes).toString()).toBe('first');
});

test.each([
  ['song.mp3', 'audio'],
  ['film.mp4', 'video'],
  ['drawing.svg', 'document'],
  ['table.csv', 'document'],
  ['no ending', 'document'],
])('%s is sent as %s, under its own name', async (name, kind) => {
  writeFileSync(join(folder, name), 'x');
  expect(await keep(name)).toMatchObject({ kind, name });
});

test('a name of any length and script can be kept', async () => {
  const name = `${'\u{1F9F5}'.repeat(60)}.txt`;
  writeFileSync(join(folder, name), 'thread');
  const kept = await keep(name);
  expect([kept.name, readFileSync(kept.path, 'utf8')]).toEqual([name, 'thread']);
});

test('what is no ordinary file, or not there, is refused without waiting for it', async () => {
  mkdirSync(join(folder, 'sub'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  for (const name of ['sub', 'pipe']) {
    await expect(keep(name)).rejects.toMatchObject({ code: 'bad_input', message: `${name} is not a file` });
  }
  await expect(keep('missing')).rejects.toMatchObject({ code: 'bad_input', message: 'missing cannot be read' });
});

test('a file that is too large where it goes, or for everybody, is refused and not copied', async () => {
  writeFileSync(join(folder, 'big.bin'), Buffer.alloc(101));
  const refusal = (bytes: number) => refusalOf(abilities, 'harbour', bytes);
  await expect(keep('big.bin', { refusal })).rejects.toThrow(
    'big.bin was not sent: harbour takes files up to 100 bytes',
  );
  truncateSync(join(folder, 'big.bin'), 200 * 1024 * 1024);
  await expect(keep('big.bin')).rejects.toThrow('big.bin was not sent: files up to 100 MB can be sent');
  expect(readdirSync(folder)).toEqual(['big.bin']);
});

test('the copies of a workspace take no more than they may', async () => {
  for (const name of ['a', 'b', 'c']) {
    writeFileSync(join(folder, name), 'x'.repeat(100));
    await keep(name, { maxFolderBytes: 250 });
  }
  expect(readdirSync(join(folder, 'workspace', 'sent'))).toHaveLength(2);
});

test('a copy that is gone, or that the place does not take, fails for good and says so', async () => {
  writeFileSync(join(folder, 'a.txt'), 'x');
  const kept = await keep('a.txt');
  const none = { files: { in: true, out: false, maxBytes: 0 } } as typeof abilities;
  const refused = { retryAfterMs: null, message: 'a.txt was not sent: pigeon takes no files' };
  await expect(readToSend([kept], none, 'pigeon')).rejects.toMatchObject(refused);
  rmSync(kept.path);
  const gone = { retryAfterMs: null, message: 'a.txt was not sent: its copy is not on this machine any more' };
  await expect(readToSend([kept], abilities, 'harbour')).rejects.toMatchObject(gone);
});
