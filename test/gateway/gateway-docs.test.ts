import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/catalogue.ts';

const docs = fileURLToPath(new URL('../../docs/gateway.md', import.meta.url));

test('docs/gateway.md lists every slash command as help does', () => {
  const rows = COMMANDS.map(({ name, aliases = [], takes, summary }) => {
    const names = [name, ...aliases].map((each) => `\`/${each}${takes === undefined ? '' : ` ${takes}`}\``);
    return `| ${names.join(', ').replaceAll('|', '\\|')} | ${summary} |`;
  });
  const shown = readFileSync(docs, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `/'));
  expect(shown).toEqual(rows);
});
