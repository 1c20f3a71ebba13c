import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EVENT_TYPES, isNumbered } from './events.ts';

const page = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8');
const source = readFileSync(new URL('./events.ts', import.meta.url), 'utf8');

/** Type and fields of each row of a part of the page. */
function documented(from: string, to: string): Record<string, string[]> {
  const part = page.slice(page.indexOf(from), page.indexOf(to));
  const rows = [...part.matchAll(/^\| `([a-z_]+:[^`]+)` \| .+ \| (.+) \|$/gm)];
  return Object.fromEntries(
    rows.map(([, type, fields = '']) => [type, [...fields.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? '')]),
  );
}

/** The names of the fields of an interface or an object type, as the source declares them. */
function fieldsOf(declaration: string): string[] {
  const own = [...declaration.matchAll(/(?:readonly )?(\w+): /g)];
  const shared = SHARED.filter((name) => declaration.startsWith(name)).flatMap((name) => fieldsOf(interfaceBody(name)));
  return [...shared, ...own.map(([, name]) => name ?? '')];
}

function interfaceBody(name: string): string {
  return new RegExp(`interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? '';
}

const SHARED = ['TurnFields', 'ApprovalFields', 'PlatformPlace'];

/** The fields of each type as `EventFields` declares them. */
function declared(): Record<string, string[]> {
  const body = interfaceBody('EventFields');
  const entries = [...body.matchAll(/^ {2}'([^']+)': ([\s\S]*?);$(?=\n {2}'|\n?$(?![\s\S]))/gm)];
  return Object.fromEntries(entries.map(([, type, declaration = '']) => [type, fieldsOf(declaration)]));
}

describe('docs/events.md', () => {
  const numbered = documented('Numbered within', 'Not numbered');
  const others = documented('Not numbered', '## Subscribing');

  test('lists every type and nothing else', () => {
    const types = Object.keys({ ...numbered, ...others });
    expect(types.toSorted()).toEqual([...EVENT_TYPES, 'command:<name>'].toSorted());
  });

  test('says which are numbered', () => {
    for (const type of Object.keys(numbered)) expect([type, isNumbered(type as 'command:new')]).toEqual([type, true]);
    for (const type of Object.keys(others)) expect([type, isNumbered(type as 'command:new')]).toEqual([type, false]);
  });

  test('lists the fields that the code declares for each type', () => {
    const all = { ...declared(), 'command:<name>': fieldsOf(interfaceBody('CommandFields')) };
    expect(Object.keys(all)).toHaveLength(EVENT_TYPES.length + 1);
    expect({ ...numbered, ...others }).toEqual(all);
  });

  test('lists the fields that all have in common', () => {
    const common = [...page.slice(0, page.indexOf('## Types')).matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    const place = fieldsOf(interfaceBody('EventPlace'));
    expect(common.toSorted()).toEqual(['id', 'session_seq', 'type', 'at', ...place].toSorted());
  });
});
