import { nearestName } from '../lifecycle/events.ts';
import { dotted, type Path, type Problem } from './problem.ts';
import { allKeys, keysUnder, type Schema } from './schema-keys.ts';
import type { YamlFile } from './yaml-file.ts';

/** What zod says against a value; only what is needed of it. */
export interface Issue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly issues?: readonly { readonly message: string }[];
}

/** Every issue in words, with its place in the file. */
export function explainIssues(issues: readonly Issue[], schema: Schema, source: YamlFile): Problem[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
    if (issue.keys !== undefined) return issue.keys.map((key) => unknownKey([...path, key], schema, source));
    return [problemAt(path, sentence(path, issue, source.value), source)];
  });
}

export function problemAt(path: Path, message: string, source: YamlFile, nearest: string | null = null): Problem {
  return { file: source.file, ...source.placeOf(path), path: dotted(path), message, nearest };
}

function unknownKey(path: Path, schema: Schema, source: YamlFile): Problem {
  const section = path.slice(0, -1);
  const nearest = nearestKey(String(path.at(-1)), section, schema);
  if (nearest === null) return problemAt(path, 'no such setting; there are none here', source);
  return problemAt(path, `no such setting; did you mean "${nearest}"?`, source, nearest);
}

/** A neighbour, unless the very name is at home in one other section. */
function nearestKey(key: string, section: Path, schema: Schema): string | null {
  const elsewhere = allKeys(schema).filter(({ path }) => path.endsWith(`.${key}`));
  const neighbours = keysUnder(schema, section);
  if (elsewhere.length === 1) return elsewhere[0]!.path;
  return neighbours.length === 0 ? null : nearestName(key, neighbours);
}

/** What is wrong, said of the value as it is written: a `${NAME}` is not shown as what it stands for. */
function sentence(path: Path, issue: Issue, file: unknown): string {
  const fault = issue.issues?.[0]?.message ?? issue.message;
  if (issue.code === 'invalid_key') return `${JSON.stringify(path.at(-1))} is ${fault}`;
  const written = valueAt(file, path);
  const isShown = (typeof written !== 'object' || written === null) && !isSecret(path);
  if (!isShown || fault.startsWith('missing')) return `it is ${fault}`;
  return written === undefined ? `the default is ${fault}` : `${show(written)} is ${fault}`;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inside, part) => (typeof inside === 'object' && inside !== null ? Reflect.get(inside, part) : undefined),
    value,
  );
}

const SECRET_KEY = /(?:^|_)(?:api_key|token|secret)$/;

function isSecret(path: Path): boolean {
  return SECRET_KEY.test(String(path.at(-1))) || path.includes('env') || path.includes('headers');
}

const SHOWN_CHARS = 60;

function show(value: unknown): string {
  if (typeof value !== 'string') return String(value);
  const shown = value.replace(/:[^@\s]*@/g, ':***@');
  return JSON.stringify(shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS)}…` : shown);
}
