import { expect } from 'vitest';
import { type Declaration, FromVariable, REQUIRED } from '../../src/settings/declaration.ts';

/** The rows of everything under a key. What is described as a whole has one row for all of it. */
export function rowsOf(declaration: Declaration, path: string): string[] {
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
  if (byDefault instanceof FromVariable) return byDefault.names.map((name) => `\`\${${name}}\``).join(', older ');
  return `\`${Array.isArray(byDefault) ? `[${byDefault.join(', ')}]` : byDefault}\``;
}

/** A page with the table under one of its headings as it should be. */
export function withTable(page: string, heading: string, rows: readonly string[]): string {
  const table = ['| key | default | |', '|---|---|---|', ...rows, ''].join('\n');
  const before = new RegExp(`(^## ${heading}\\n(?:(?!\\||#).*\\n)*)(?:\\|.*\\n)+`, 'm');
  expect(page).toMatch(before);
  return page.replace(before, (_, above: string) => above + table);
}
