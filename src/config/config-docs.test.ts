import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { fileSchema } from './schema.ts';
import { allKeys } from './schema-keys.ts';

const page = readFileSync(new URL('../../docs/config.md', import.meta.url), 'utf8');

/** Keys that are described once for all the names they may have. */
const SUMMED_UP =
  /^(sessions\.reset_by_type|sessions\.reset_by_platform|mcp\.servers\.\*\.(?:env|headers)|tracing\.headers)\..*$/;

function documented(): string[] {
  return [...page.matchAll(/^\| `([^`]+)` \| (.*?) \|/gm)].map(([, key, byDefault]) => `${key} ${byDefault}`);
}

function defined(): string[] {
  const keys = allKeys(fileSchema((name) => `\${${name}}`)).map(({ path, byDefault }) => {
    const whole = SUMMED_UP.exec(path)?.[1];
    return whole === undefined ? `${inDocs(path)} ${asWritten(path, byDefault)}` : `${inDocs(whole)} \`{}\``;
  });
  return [...new Set(keys)];
}

const inDocs = (path: string): string => path.replaceAll('*', 'NAME');

function asWritten(path: string, byDefault: unknown): string {
  // A list that must not be empty has no default either.
  if (byDefault === undefined || path === 'hooks.webhooks[].events') return 'required';
  return `\`${Array.isArray(byDefault) ? `[${byDefault.join(', ')}]` : byDefault}\``;
}

test('docs/config.md lists every key with its default, in the order of the schema, and nothing else', () => {
  expect(documented()).toEqual(defined());
});

test('every key that is mentioned in docs/config.md exists', () => {
  const sections = allKeys(fileSchema(() => null)).map(({ path }) => path.split('.')[0]);
  const mentioned = [...page.matchAll(/`((?:[a-z]+\.)[a-z_.]+)`/g)].map(([, key]) => key ?? '');
  const known = page.match(/^\| `[^`]+`/gm)?.map((row) => row.slice(3, -1)) ?? [];
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
