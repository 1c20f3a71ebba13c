import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { rowsOf, withTable } from '../../test/support/settings-table.ts';
import { section } from '../settings/declaration.ts';
import { common } from './chat-settings.ts';
import { SERVED } from './served.ts';

const pageOf = (name: string): string => fileURLToPath(new URL(`../../docs/platforms/${name}.md`, import.meta.url));

test.each(SERVED.map((each) => [each.name, each] as const))(
  'docs/platforms/%s.md has the settings of its own (npx vitest run src/platforms -u writes them)',
  async (name, { settings, label }) => {
    const page = pageOf(name);
    expect(existsSync(page), `${label} needs a page`).toBe(true);
    const text = readFileSync(page, 'utf8');
    const own = Object.entries(settings.fields).filter(([key]) => !(key in common) && key !== 'accounts');
    const rows = rowsOf(section(Object.fromEntries(own)), `platforms.${name}`);
    await expect(withTable(text, 'Settings', rows)).toMatchFileSnapshot(page);
  },
);

test.each(SERVED.map((each) => [each.name, each] as const))(
  '%s says what to click where, and asks only for settings that it has',
  (_, { settings, setup }) => {
    expect(setup.steps.length).toBeGreaterThan(0);
    expect(setup.asks.length).toBeGreaterThan(0);
    for (const { key } of setup.asks) expect(Object.keys(settings.fields)).toContain(key.split('.')[0]);
  },
);
