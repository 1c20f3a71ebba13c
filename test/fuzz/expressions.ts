import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';

/** One regular expression of the sources. */
export interface Expression {
  readonly pattern: string;
  readonly flags: string;
  /** The files that have it. */
  readonly files: readonly string[];
}

export interface Expressions {
  /** Those that are written as such. */
  readonly literal: readonly Expression[];
  /** Files that make expressions out of text. */
  readonly made: readonly string[];
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Every regular expression of src, found by reading the TypeScript as TypeScript. */
export function findExpressions(): Expressions {
  const found = new Map<string, { pattern: string; flags: string; files: string[] }>();
  const made = new Set<string>();
  for (const file of globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).sort()) {
    if (/\.test\.tsx?$/.test(file)) continue;
    const text = readFileSync(`${ROOT}/${file}`, 'utf8');
    visit(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }), (node) => {
      if (isObject(node.regex)) {
        const { pattern, flags } = node.regex as { pattern: string; flags: string };
        const known = found.get(`${flags}/${pattern}`) ?? { pattern, flags, files: [] };
        known.files.push(file);
        found.set(`${flags}/${pattern}`, known);
      }
      const { type, callee } = node;
      const isCall = type === 'NewExpression' || type === 'CallExpression';
      if (isCall && isObject(callee) && callee.name === 'RegExp') made.add(file);
    });
  }
  return { literal: [...found.values()], made: [...made] };
}

type Node = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, see);
  } else if (isObject(value)) {
    see(value);
    for (const inner of Object.values(value)) visit(inner, see);
  }
}
