import { isBuiltin } from 'node:module';
import { posix } from 'node:path';

/** What the files of one folder of src/ may import besides each other. */
export interface Layer {
  readonly layers: readonly string[];
  /** The npm packages it may import; all but the owned ones, if it does not say. */
  readonly packages?: readonly string[];
  /** False if none of Node's modules may be imported. */
  readonly builtins?: false;
  /** True if `process.env` may be read. */
  readonly environment?: true;
  /** The files of the layer that its folders may not know; they know nothing of each other either. */
  readonly hidden?: readonly string[];
  /** The other layers that its folders may know, where that is less than the layer may. */
  readonly folderLayers?: readonly string[];
  /** The only files of another layer that it may know. */
  readonly entrances?: Readonly<Record<string, readonly string[]>>;
}

export interface Table {
  readonly layers: Readonly<Record<string, Layer>>;
  /** Modules that belong to one layer. */
  readonly owned: Readonly<Record<string, string>>;
}

interface Import {
  readonly specifier: string;
  /** By a call: only when it comes to that. */
  readonly later: boolean;
  /** False for what is not evaluated with the importing file: `import type`, and the code of another thread. */
  readonly evaluated: boolean;
}

/** Every breach of the table in the sources (path below src/ and text), one line each. */
export function findViolations(sources: ReadonlyMap<string, string>, table: Table): string[] {
  const violations: string[] = [];
  const graph = new Map<string, string[]>();
  for (const [path, text] of sources) {
    const code = withoutComments(text);
    const imports = findImports(code);
    for (const { specifier } of imports) {
      const breach = findBreach(path, specifier, table);
      if (breach) violations.push(`${path} imports ${specifier}: ${breach}`);
    }
    const layer = table.layers[layerOf(path)];
    if (!layer) violations.push(`${path} is in no layer of the table`);
    if (!layer?.environment && /\bprocess\s*(\??\.\s*env\b|\[)/.test(code))
      violations.push(`${path} reads process.env`);
    const evaluated = imports.filter((found) => found.evaluated && found.specifier.startsWith('.'));
    graph.set(
      path,
      evaluated.map(({ specifier }) => resolveFrom(path, specifier)),
    );
  }
  return [...violations, ...findCycles(graph).map((cycle) => `cycle: ${cycle.join(' > ')}`)];
}

/** The npm packages that are loaded together with a file, through whatever it imports. */
export function packagesLoadedWith(entry: string, sources: ReadonlyMap<string, string>): ReadonlySet<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  function walk(path: string): void {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { specifier, evaluated, later } of findImports(withoutComments(sources.get(path) ?? ''))) {
      if (!evaluated || later) continue;
      if (specifier.startsWith('.')) walk(resolveFrom(path, specifier));
      else if (!isBuiltin(specifier)) packages.add(packageOf(specifier));
    }
  }
  walk(entry);
  return packages;
}

/** The cycles of a directed graph, each as a walk that ends where it began. */
export function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const finished = new Set<string>();
  function walk(node: string, trail: readonly string[]): void {
    const seenAt = trail.indexOf(node);
    if (seenAt >= 0) cycles.push([...trail.slice(seenAt), node]);
    if (seenAt >= 0 || finished.has(node)) return;
    for (const next of graph.get(node) ?? []) walk(next, [...trail, node]);
    finished.add(node);
  }
  for (const node of graph.keys()) walk(node, []);
  return cycles;
}

function findBreach(path: string, specifier: string, { layers, owned }: Table): string | undefined {
  const name = layerOf(path);
  const layer = layers[name];
  if (!layer) return undefined; // reported once, for the file
  if (!specifier.startsWith('.')) {
    const builtin = isBuiltin(specifier);
    const module = builtin ? `node:${specifier.replace(/^node:/, '')}` : packageOf(specifier);
    const owner = owned[module];
    if (owner !== undefined) return owner === name ? undefined : `only ${owner} may`;
    if (module === 'node:process' && !layer.environment) return 'it holds the environment';
    if (builtin) return layer.builtins === false ? `${name} does without Node` : undefined;
    return layer.packages?.includes(module) === false ? `${name} does without this package` : undefined;
  }
  const target = resolveFrom(path, specifier);
  if (target.startsWith('..')) return 'it is outside src/';
  const other = layerOf(target);
  if (other !== name) {
    const isInFolder = layer.hidden !== undefined && path.split('/').length > 2;
    const known = isInFolder ? (layer.folderLayers ?? layer.layers) : layer.layers;
    if (!known.includes(other)) return `${name} may not know ${other}`;
    const entrances = layer.entrances?.[other] ?? [target];
    return entrances.includes(target) ? undefined : `of ${other}, ${name} may know only ${entrances.join(', ')}`;
  }
  const folder = path.split('/').slice(0, 2).join('/');
  const { hidden } = layer;
  if (!hidden || folder === path || target.startsWith(`${folder}/`)) return undefined;
  const isShared = target.split('/').length === 2 && !hidden.includes(target);
  return isShared ? undefined : `${folder} may know only itself and what all of them share`;
}

/** Static and dynamic imports, re-exports, `require`, and files named by `new URL(..., import.meta.url)`. */
function findImports(code: string): Import[] {
  const found: Import[] = [];
  const quoted = /['"`]([^'"`\n]+)['"`]/.source;
  const declaration = new RegExp(
    `^\\s*(?:import|export)\\b(\\s+type\\b(?!\\s*(?:,|from\\b)))?(?:[^;'"\`=()]*?\\bfrom)?\\s*${quoted}`,
    'gm',
  );
  for (const [, type, specifier = ''] of code.matchAll(declaration))
    found.push({ specifier, later: false, evaluated: !type });
  const call = new RegExp(
    `(typeof\\s+)?\\b(?:import|require|getBuiltinModule|import\\.meta\\.resolve)\\(\\s*${quoted}\\s*\\)(\\.[A-Z])?`,
    'g',
  );
  for (const [, typeOf, specifier = '', typeMember] of code.matchAll(call)) {
    found.push({ specifier, later: true, evaluated: !typeOf && !typeMember });
  }
  for (const [, expression = ''] of code.matchAll(/\bnew URL\(([^;]*?),\s*import\.meta\.url/g)) {
    for (const [, specifier = ''] of expression.matchAll(new RegExp(quoted, 'g'))) {
      if (/^\.{1,2}\/.*\.[jt]s$/.test(specifier)) found.push({ specifier, later: true, evaluated: false });
    }
  }
  return found;
}

/** Keeps strings whole, so that the `//` of a URL is not taken for a comment. */
function withoutComments(text: string): string {
  const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return text.replace(token, (match) => (match.startsWith('/') ? '' : match));
}

/** Files named `*-store.ts` belong to the store, beside whatever feature they are kept. The page has no store. */
function layerOf(path: string): string {
  if (!path.startsWith('space/') && path.endsWith('-store.ts')) return 'store';
  return path.split('/', 1)[0] ?? '';
}

function resolveFrom(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}
