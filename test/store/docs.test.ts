import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { connectionOptions } from '../../src/store/postgres/connection.ts';
import { DEADLINES } from '../../src/store/postgres/deadlines.ts';

const page = readFileSync(new URL('../../docs/store.md', import.meta.url), 'utf8');

/** The paragraph that begins with this, in one line. */
function paragraph(beginning: string): string {
  const found = page.split('\n\n').find((text) => text.startsWith(beginning));
  return found?.replaceAll('\n', ' ') ?? '';
}

test('docs/store.md says how long PostgreSQL is waited for', () => {
  const { tryMs, totalMs, beatMs, slowMs } = DEADLINES;
  const rows = page.match(/^\| what is sent .*\n(?:\|.*\n)+/m)?.[0].split('\n') ?? [];
  const times = rows
    .slice(2, -1)
    .map((row) => [...row.matchAll(/(\d+) s\b/g)].map(([, seconds]) => Number(seconds) * 1000));
  expect(times).toEqual([
    [tryMs, totalMs],
    [beatMs, beatMs],
    [slowMs, slowMs],
  ]);
});

test('docs/store.md names the parameters of the URL that are refused', () => {
  const refused = paragraph('**Parameters of the URL.**').split('stay as they are.')[1] ?? '';
  const names = [...refused.matchAll(/`([a-z_]+)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'store_url');
  expect(names.length).toBeGreaterThan(5);
  for (const name of names) {
    expect(() => connectionOptions(`postgres://host/db?${name}=1`, DEADLINES)).toThrow(`"${name}"`);
  }
});

test('docs/store.md says how pgbouncer has to be set, in the words of the refusal', () => {
  expect(paragraph('**Poolers.**')).toMatch(/pgbouncer works with `pool_mode = session`/);
});
