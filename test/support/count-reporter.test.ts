import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'moirai-count-'));
mkdirSync(join(project, 'src'));
symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
writeFileSync(join(project, 'package.json'), '{ "type": "module" }');

afterAll(() => rmSync(project, { recursive: true }));

test('the last line counts what passed, failed and was skipped', () => {
  const file = `
    test('passes', () => {});
    test('fails', () => { expect(1).toBe(2); });
    test.skip('is skipped', () => {});
    test.todo('is for later');
  `;
  expect(lastLineOf({ file })).toBe('1 passed, 1 failed, 2 skipped');
});

test('a file that cannot be imported, a failed hook and a stray rejection count as failed', () => {
  const unimportable = `import './not-there.ts'; test('never runs', () => {});`;
  const hook = `beforeAll(() => { throw new Error('hook'); }); test('never runs', () => {});`;
  const stray = `test('passes', () => { void Promise.reject(new Error('stray')); });`;
  expect(lastLineOf({ unimportable, hook, stray })).toBe('1 passed, 3 failed, 1 skipped');
});

test('a run without tests counts as failed', () => {
  expect(lastLineOf({})).toBe('0 passed, 1 failed, 0 skipped');
});

function lastLineOf(files: Record<string, string>): string | undefined {
  rmSync(join(project, 'src'), { recursive: true });
  mkdirSync(join(project, 'src'));
  for (const [name, body] of Object.entries(files)) {
    const source = `import { beforeAll, expect, test } from 'vitest';\n${body}\nvoid [beforeAll, expect];`;
    writeFileSync(join(project, 'src', `${name}.test.ts`), source);
  }
  const reporter = resolve(root, 'test/support/count-reporter.ts');
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--reporter=default', `--reporter=${reporter}`];
  const { stdout } = spawnSync(process.execPath, args, {
    cwd: project,
    encoding: 'utf8',
    env: { PATH: process.env.PATH }, // none of what this run told its own processes
  });
  return stdout.trimEnd().split('\n').at(-1);
}
