import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ERROR_HINTS } from './codes.ts';

const docs = fileURLToPath(new URL('../../docs/errors.md', import.meta.url));

test('docs/errors.md lists every code and nothing else (npx vitest run src/errors -u writes it)', async () => {
  const rows = Object.entries(ERROR_HINTS).map(([code, hint]) => `| \`${code}\` | ${hint.replaceAll('|', '\\|')} |`);
  const page = [
    '# Errors',
    '',
    'Every error that Moirai reports has a stable code, a message that says what happened and where, and a hint that says',
    'what to do. This page is written from `src/errors/codes.ts` by its test.',
    '',
    '| code | what to do |',
    '|---|---|',
    ...rows,
    '',
  ];
  await expect(page.join('\n')).toMatchFileSnapshot(docs);
});

test('every code is words in lower case, and every hint is a sentence', () => {
  for (const [code, hint] of Object.entries(ERROR_HINTS)) {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(hint).toMatch(/^[A-Z].*\.$/);
  }
});
