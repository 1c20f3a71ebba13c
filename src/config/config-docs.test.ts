import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { rowsOf, withTable } from '../../test/support/settings-table.ts';
import { platformSection } from '../platforms/chat-settings.ts';
import { configSettings } from './settings.ts';

const docs = fileURLToPath(new URL('../../docs/config.md', import.meta.url));
const page = readFileSync(docs, 'utf8');

/** What all platforms have in common stands here; what one has of its own, on its page. */
function platformRows(): string[] {
  const anyPlatform = platformSection({});
  const { web } = configSettings.fields.platforms.fields;
  return [...rowsOf(anyPlatform, 'platforms.PLATFORM'), ...rowsOf(web, 'platforms.web')];
}

/** The page with the table of each section as the declarations say. */
function withTables(text: string): string {
  return Object.entries(configSettings.fields).reduce((before, [name, section]) => {
    return withTable(before, name, name === 'platforms' ? platformRows() : rowsOf(section, name));
  }, text);
}

test('docs/config.md has the tables of the declarations (npx vitest run src/config -u writes them)', async () => {
  expect(page.match(/^\| key /gm)).toHaveLength(Object.keys(configSettings.fields).length);
  await expect(withTables(page)).toMatchFileSnapshot(docs);
});

test('every key that is mentioned in docs/config.md exists', () => {
  const sections = Object.keys(configSettings.fields);
  const mentioned = [...page.matchAll(/`((?:[a-z]+\.)[a-z_.]+)`/g)].map(([, key]) => key ?? '');
  const known = page.match(/^\| `[^`]+`/gm)?.map((each) => each.slice(3, -1)) ?? [];
  const missing = mentioned.filter((key) => sections.includes(key.split('.')[0] ?? '') && !isPart(key, known));
  expect(missing).toEqual([]);
});

test('every example of docs/config.md is valid', () => {
  const home = new ConfigHome();
  const env = { PG_PASSWORD: 'x', LEDGER_SECRET: 'whsec_YQ==', TRACKER_TOKEN: 'x', COLLECTOR_KEY: 'x' };
  const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
  expect(examples.length).toBeGreaterThan(3);
  for (const example of examples) expect(() => home.load(example, env)).not.toThrow();
  home.remove();
});

function isPart(key: string, known: readonly string[]): boolean {
  return known.some((each) => each === key || each.startsWith(`${key}.`));
}
