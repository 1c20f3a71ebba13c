import { textOf } from '../fields.ts';

/** What came: its text, and what it says as JSON; undefined where it is none. */
export interface Prompted {
  readonly text: string;
  readonly json: unknown;
}

/** Fills in a prompt: `{{body}}` and `{{field.path}}`. */
export type Template = (body: Prompted) => string;

/** Characters of one value, and of the whole. What is longer is cut, and says so. */
const MOST_VALUE = 16_384;
const MOST_TEXT = 40_000;

const PLACEHOLDER = /\{\{\s*([^{}\s]+)\s*\}\}/g;

/**
 * Reads a prompt once. What is filled in later stays as it is: a value that looks like a placeholder is none. A field that
 * is missing becomes nothing.
 */
export function readTemplate(prompt: string): Template {
  const pieces: ((body: Prompted) => string)[] = [];
  let end = 0;
  for (const { 0: placeholder, 1: path = '', index } of prompt.matchAll(PLACEHOLDER)) {
    const between = prompt.slice(end, index);
    end = index + placeholder.length;
    pieces.push(() => between, path === 'body' ? ({ text }) => bounded(text, MOST_VALUE) : valueAt(path.split('.')));
  }
  const rest = prompt.slice(end);
  return (body) => bounded(`${pieces.map((piece) => piece(body)).join('')}${rest}`, MOST_TEXT);
}

function valueAt(path: readonly string[]): (body: Prompted) => string {
  return ({ json }) => bounded(written(path.reduce(inside, json)), MOST_VALUE);
}

/** Only what was sent, and how long a list is: nothing that objects have of themselves. */
function inside(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Reflect.get(value, name);
}

function written(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'object') return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return ''; // It is too deep to be written.
  }
}

function bounded(value: string, most: number): string {
  const text = textOf(value, most) ?? '';
  return value.length <= most ? text : `${text}… (cut: it has ${value.length} characters)`;
}
