import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/catalogue.ts';
import { ALBUM_SETTLE_MS, SETTLE_MS, SPLIT_SETTLE_MS } from '../../src/inbound/reception.ts';

const docs = fileURLToPath(new URL('../../docs/gateway.md', import.meta.url));

/** A page as one line. */
function page(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8').replace(/\s+/g, ' ');
}

test('docs/gateway.md says which messages of a chat platform become one turn', () => {
  expect(page('gateway.md')).toContain(
    `written within ${SETTLE_MS} ms of each other are one turn; so are the pieces of a text that a client splits (${SPLIT_SETTLE_MS / 1000} s) and the pictures of an album (${ALBUM_SETTLE_MS} ms)`,
  );
});

test('docs/people.md says that a code of a direct chat opens groups too', () => {
  expect(page('people.md')).toContain('let in by a code in a direct chat may talk in every group and topic');
});

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
