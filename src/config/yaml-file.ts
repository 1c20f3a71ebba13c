import { readFileSync } from 'node:fs';
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Path } from '../settings/read-settings.ts';
import { configInvalid, type Problem } from './problem.ts';

/** Where a key stands in the file. */
interface Place {
  readonly line: number | null;
  readonly column: number | null;
}

/** The values of a YAML file, and where they stand in it. */
export interface YamlFile {
  readonly file: string;
  readonly value: unknown;
  /** Where the key stands, or what is nearest above it. */
  placeOf(path: Path): Place;
}

/** A file that does not exist: nothing is set. */
export function noFile(file: string): YamlFile {
  return { file, value: {}, placeOf: () => NOWHERE };
}

const NOWHERE: Place = { line: null, column: null };

/** The text of a file, or null when there is none. Throws `config_unreadable`. */
export function readText(file: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const why = cause instanceof TypeError ? 'it is not UTF-8 text' : (cause as Error).message;
    throw new MoiraiError('config_unreadable', `${file} cannot be read: ${why}`, { cause });
  }
}

/** Reads YAML 1.2, in which `on`, `off` and `04:00` are text. Throws `config_invalid` for what is no YAML. */
export function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { version: '1.2', schema: 'core', lineCounter: lines, logLevel: 'error' });
  const faults = independent([...document.errors, ...document.warnings]);
  if (faults.length > 0) {
    throw configInvalid(faults.map(({ message, linePos }) => syntaxProblem(file, message, linePos?.[0], text)));
  }
  return {
    file,
    value: plainValue(file, () => document.toJS()),
    placeOf: (path) => {
      const offset = isNode(document.contents) ? findOffset(document.contents, path) : null;
      if (offset === null) return NOWHERE;
      const { line, col } = lines.linePos(offset);
      return { line, column: col };
    },
  };

  /** An alias may stand for something long gone; what stands for it has its own place. */
  function findOffset(root: ParsedNode, path: Path): number | null {
    let node: Node | null | undefined = root;
    let offset: number | null = null;
    for (const part of path) {
      if (isAlias(node)) node = node.resolve(document);
      const [key, value] = childOf(node, part);
      if (key === null) break;
      offset = key.range?.[0] ?? offset;
      node = value;
    }
    return offset;
  }
}

/** Behind the first place where the reader lost its way, all it says follows from that; keys given twice do not. */
function independent(faults: readonly YAMLError[]): YAMLError[] {
  const astray = faults.find(({ code }) => code !== 'DUPLICATE_KEY');
  return faults.filter((each) => each === astray || (each.code === 'DUPLICATE_KEY' && astray === undefined));
}

function plainValue(file: string, read: () => unknown): unknown {
  try {
    const value = read();
    JSON.stringify(value);
    return value;
  } catch (cause) {
    // Aliases that multiply without end, or stand for what they stand in.
    throw configInvalid([syntaxProblem(file, 'its aliases stand for too much')], cause);
  }
}

/** The node that names a child, and the child. */
function childOf(node: unknown, part: string | number): readonly [Node | null, Node | null] {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
    return [isNode(pair?.key) ? pair.key : null, isNode(pair?.value) ? pair.value : null];
  }
  const item = isSeq(node) ? node.items[Number(part)] : null;
  return isNode(item) ? [item, item] : [null, null];
}

const HINT = `; inside { } and [ ] a $\{NAME} needs quotes`;

/** Without the words of the file, which may be secrets. */
function syntaxProblem(file: string, message: string, place?: { line: number; col: number }, text = ''): Problem {
  const [reason = ''] = message.split(/ at line \d+|\n|; |: "/);
  const isVariable = text.split('\n')[(place?.line ?? 0) - 1]?.includes('${') === true;
  const sentence = `this is no YAML: ${reason}${isVariable ? HINT : ''}`;
  return { file, line: place?.line ?? null, column: place?.col ?? null, path: '', message: sentence, nearest: null };
}
