import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Turnstile } from './turnstile.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-turnstile-'));
  path = join(folder, 'state.db');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('passing makes no file', () => {
  const turnstile = new Turnstile(path);
  turnstile.enter(() => expect(existsSync(`${path}-turnstile-journal`)).toBe(false));
  turnstile.close();
});
