import { nearestName } from '../lifecycle/events.ts';
import type { Declaration } from '../settings/declaration.ts';
import { allKeys, keysUnder } from '../settings/keys.ts';
import type { Issue, Path } from '../settings/read-settings.ts';
import { dotted, type Problem } from './problem.ts';
import type { YamlFile } from './yaml-file.ts';

/** An issue in words, with its place in the file. */
export function explainIssue(issue: Issue, root: Declaration, source: YamlFile): Problem {
  const { path } = issue;
  if (issue.of !== 'key') return problemAt(path, sentence(issue, source.value), source);
  const nearest = nearestKey(String(path.at(-1)), path.slice(0, -1), root);
  if (nearest === null) return problemAt(path, 'no such setting; there are none here', source);
  return problemAt(path, `no such setting; did you mean "${nearest}"?`, source, nearest);
}

export function problemAt(path: Path, message: string, source: YamlFile, nearest: string | null = null): Problem {
  return { file: source.file, ...source.placeOf(path), path: dotted(path), message, nearest };
}

/** A neighbour, unless the very name is at home in one other section. Platforms have many names in common with others. */
function nearestKey(key: string, section: Path, root: Declaration): string | null {
  const elsewhere = allKeys(root).filter(({ path }) => path.endsWith(`.${key}`));
  const core = elsewhere.filter(({ path }) => !path.startsWith('platforms.'));
  const neighbours = keysUnder(root, section);
  for (const homes of [core, elsewhere]) if (homes.length === 1) return homes[0]!.path;
  return neighbours.length === 0 ? null : nearestName(key, neighbours);
}

/** What is wrong with the value as it is written: a `${NAME}` is not shown as what it stands for. */
function sentence({ path, of, fault, secret }: Issue, file: unknown): string {
  if (of === 'name') return `${JSON.stringify(path.at(-1))} is ${fault}`;
  const written = valueAt(file, path);
  const isShown = (typeof written !== 'object' || written === null) && !secret;
  if (!isShown || fault.startsWith('missing')) return `it is ${fault}`;
  return written === undefined ? `the default is ${fault}` : `${show(written)} is ${fault}`;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inside, part) => (typeof inside === 'object' && inside !== null ? Reflect.get(inside, part) : undefined),
    value,
  );
}

/** A word that ends with `@`: what stands between its first colon and its end may be a password. */
function hidePassword(word: string): string {
  const colon = word.indexOf(':');
  return colon < 0 ? word : `${word.slice(0, colon)}:***@`;
}

const SHOWN_CHARS = 60;

function show(value: unknown): string {
  if (typeof value !== 'string') return String(value);
  const shown = value.replace(/(?<![^@\s])[^@\s]+@/g, hidePassword);
  return JSON.stringify(shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS)}…` : shown);
}
