import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
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

test('a process that is frozen in it holds up nobody for longer than a moment, and only once', () => {
  const frozen = new DatabaseSync(`${path}-turnstile`);
  const turnstile = new Turnstile(path, 3000);
  frozen.exec('BEGIN IMMEDIATE');
  const took = (): number => {
    const began = performance.now();
    let entered = 0;
    turnstile.enter(() => entered++);
    expect(entered).toBe(1);
    // The next one has to pass it again.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    return performance.now() - began;
  };
  expect(took()).toBeGreaterThan(500);
  expect(took()).toBeLessThan(500);
  frozen.exec('ROLLBACK');
  took();
  turnstile.enter(() => expect(() => frozen.exec('BEGIN IMMEDIATE')).toThrow('database is locked'));
  frozen.close();
  turnstile.close();
});
