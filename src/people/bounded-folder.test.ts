import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeRoom } from './bounded-folder.ts';

test('the oldest received files make room for new ones, and the newest stays however large it is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moirai-received-'));
  for (const [age, name] of ['new', 'middle', 'old'].entries()) {
    writeFileSync(join(folder, name), 'x'.repeat(100));
    utimesSync(join(folder, name), 1000 - age, 1000 - age);
  }
  await makeRoom(folder, 250);
  expect(readdirSync(folder)).toEqual(['middle', 'new']);
  await makeRoom(folder, 10);
  expect(readdirSync(folder)).toEqual(['new']);
  rmSync(folder, { recursive: true });
});
