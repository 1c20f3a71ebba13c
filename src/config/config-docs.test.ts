import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { type Declaration, FromVariable, REQUIRED } from '../settings/declaration.ts';
import { configSettings } from './settings.ts';

const docs = fileURLToPath(new URL('../../docs/config.md', import.meta.url));
const page = readFileSync(docs, 'utf8');

/** The rows of everything under a key. What is described as a whole has one row for all of it. */
function rowsOf(declaration: Declaration, path: string): string[] {
  if (declaration.type === 'setting') return [row(path, asWritten(declaration.byDefault), declaration.help)];
  if (declaration.type === 'list') {
    const own = row(path, asWritten(declaration.byDefault), declaration.help);
    return [own, ...(declaration.element.type === 'setting' ? [] : rowsOf(declaration.element, `${path}[]`))];
  }
  if (declaration.type !== 'section' && declaration.help !== '') return [row(path, '`{}`', declaration.help)];
  if (declaration.type === 'named') return rowsOf(declaration.element, `${path}.NAME`);
  return Object.entries(declaration.fields).flatMap(([key, field]) => rowsOf(field, `${path}.${key}`));
}

function row(path: string, byDefault: string, help: string): string {
  return `| \`${path}\` | ${byDefault} | ${help === '' ? '' : `${help} `}|`;
}

function asWritten(byDefault: unknown): string {
  if (byDefault === REQUIRED) return 'required';
  if (byDefault instanceof FromVariable) return `\`\${${byDefault.name}}\``;
  return `\`${Array.isArray(byDefault) ? `[${byDefault.join(', ')}]` : byDefault}\``;
}

/** The page with the table of each section as the declarations say. */
function withTables(text: string): string {
  return Object.entries(configSettings.fields).reduce((before, [name, section]) => {
    const table = ['| key | default | |', '|---|---|---|', ...rowsOf(section, name), ''].join('\n');
    const heading = new RegExp(`(^## ${name}\\n(?:(?!\\||#).*\\n)*)(?:\\|.*\\n)+`, 'm');
    expect(before).toMatch(heading);
    return before.replace(heading, (_, above: string) => above + table);
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
