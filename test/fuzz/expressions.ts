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
  const files = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).filter((file) => !/\.test\.tsx?$/.test(file));
  return expressionsIn(files.sort().map((file) => [file, readFileSync(`${ROOT}/${file}`, 'utf8')]));
}

/** Every regular expression of these sources, by the names of their files. */
export function expressionsIn(sources: readonly (readonly [file: string, text: string])[]): Expressions {
  const found = new Map<string, { pattern: string; flags: string; files: string[] }>();
  const made = new Set<string>();
  for (const [file, text] of sources) {
    visit(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }), (node) => {
      if (isObject(node.regex)) {
        const { pattern, flags } = node.regex as { pattern: string; flags: string };
        const known = found.get(`${flags}/${pattern}`) ?? { pattern, flags, files: [] };
        known.files.push(file);
        found.set(`${flags}/${pattern}`, known);
      }
      if (makesExpression(node)) made.add(file);
    });
  }
  return { literal: [...found.values()], made: [...made] };
}

/** These make an expression of a text; `split`, `replace` and `replaceAll` take one as it is. */
const READ_AS_EXPRESSION: readonly unknown[] = ['match', 'matchAll', 'search'];

function makesExpression({ type, callee, arguments: given }: Node): boolean {
  if ((type !== 'NewExpression' && type !== 'CallExpression') || !isObject(callee)) return false;
  const property = isObject(callee.property) ? (callee.property.name ?? callee.property.value) : undefined;
  if (callee.name === 'RegExp' || property === 'RegExp') return true;
  const [first] = Array.isArray(given) ? given : [];
  // What has a name is looked for where it is made.
  const isText = isObject(first) && (typeof first.value === 'string' || NOT_NAMED.includes(first.type));
  return READ_AS_EXPRESSION.includes(property) && isText;
}

const NOT_NAMED: readonly unknown[] = ['TemplateLiteral', 'BinaryExpression', 'CallExpression'];

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
