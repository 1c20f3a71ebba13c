import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/security.md', root), 'utf8');

/** The rows of the table of threats: what may happen, what stands against it, the tests. */
const [, table = ''] = /^## Threats, and the test of each\n([\s\S]*?)^## /m.exec(page) ?? [];
const rows = table
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| threat'))
  .map((line) => line.split('|').map((cell) => cell.trim()));

test('every threat in docs/security.md names what stands against it and a test, and every test it names exists', () => {
  expect(rows.length).toBeGreaterThan(20);
  for (const [, threat = '', defence = '', tests = ''] of rows) {
    const files = [...tests.matchAll(/`([^`]+\.test\.ts)`/g)].map(([, file = '']) => file);
    expect([threat, defence !== '', files.length > 0]).toEqual([threat, true, true]);
    expect([threat, files.filter((file) => !existsSync(new URL(file, root)))]).toEqual([threat, []]);
  }
});

test('every setting that docs/security.md names is one of docs/config.md', () => {
  const settings = readFileSync(new URL('docs/config.md', root), 'utf8');
  const named = [...page.matchAll(/`((?:gateway|agent|access|mcp)\.[a-z_.A-Z]+)`/g)].map(([, key = '']) => key);
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((key) => !settings.includes(`\`${key}\``))).toEqual([]);
});
