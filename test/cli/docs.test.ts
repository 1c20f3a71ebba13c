import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliFixture } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

const docs = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');

/** The names under `Commands:` of a help text. */
async function commandsIn(...group: string[]): Promise<string[]> {
  const { output } = await cli.moirai(...group, '-h');
  const list = output.slice(output.indexOf('\nCommands:\n')).split('\n\n')[0] ?? '';
  return [...list.matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, name = '']) => name);
}

test('docs/cli.md has every command, and no other one', async () => {
  const groups = [
    'sessions',
    'gateway',
    'hooks',
    'plugins',
    'memory',
    'cron',
    'pairing',
    'platforms',
    'keys',
    'approvals',
    'config',
  ];
  const plain = (await commandsIn()).filter((name) => !groups.includes(name));
  const grouped = await Promise.all(
    groups.map(async (group) => (await commandsIn(group)).map((name) => `${group} ${name}`)),
  );
  const table = [...docs.matchAll(/^\| \[`moirai ([a-z]+(?: [a-z]+)?)\b[^`]*`\]\(#([a-z-]+)\)/gm)];
  expect(table.map(([, name]) => name).sort()).toEqual([...plain, ...grouped.flat()].sort());
  const headings = [...docs.matchAll(/^## (.+)$/gm)].map(([, text = '']) => text.toLowerCase().replaceAll(' ', '-'));
  for (const [, , anchor] of table) expect(headings).toContain(anchor);
});
