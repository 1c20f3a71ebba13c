import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { fieldsOf } from '../fields.ts';
import { type Adapter, isAdapter } from './adapter.ts';

export interface AdapterPackage {
  readonly name: string;
  /** The folder whose `node_modules` has it. */
  readonly from: string;
  /** The export that makes the adapter; null where there is one only. */
  readonly factory: string | null;
}

/** Makes an adapter with these options. Throws `platform_package`, and whatever the package says against the options. */
export async function loadAdapter(wanted: AdapterPackage, options: object): Promise<Adapter> {
  const entry = entryOf(wanted);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await import(pathToFileURL(entry).href)) as typeof module;
  } catch (cause) {
    throw new MoiraiError('platform_package', `the package ${wanted.name} cannot be loaded: ${reasonOf(cause)}`, {
      cause,
    });
  }
  const adapter = factoryOf(module, wanted)(options);
  if (isAdapter(adapter)) return adapter;
  throw new MoiraiError('platform_package', `the package ${wanted.name} makes no adapter of the Chat SDK`);
}

/** Of the folder first, then of where this program is installed. */
function entryOf({ name, from }: AdapterPackage): string {
  for (const base of [pathToFileURL(join(from, 'package.json')).href, import.meta.url]) {
    const manifest = manifestOf(name, base);
    if (manifest === null) continue;
    const fields = fieldsOf(JSON.parse(readFileSync(manifest, 'utf8')));
    const main = importedBy(fieldsOf(fields?.exports)?.['.'] ?? fields?.exports) ?? fields?.module ?? fields?.main;
    return join(dirname(manifest), typeof main === 'string' ? main : 'index.js');
  }
  throw new MoiraiError(
    'platform_package',
    `the package ${name} is not in ${from}: npm install --prefix ${from} ${name}`,
  );
}

function manifestOf(name: string, base: string): string | null {
  try {
    return findPackageJSON(name, base) ?? null;
  } catch {
    return null; // It is not there.
  }
}

/** What an import of the package loads, as its `exports` say. */
function importedBy(target: unknown): string | null {
  if (typeof target === 'string') return target;
  const conditions = fieldsOf(target);
  if (conditions === null) return null;
  for (const [condition, inner] of Object.entries(conditions)) {
    if (!['node', 'import', 'module', 'default'].includes(condition)) continue;
    const found = importedBy(inner);
    if (found !== null) return found;
  }
  return null;
}

type Factory = (options: object) => unknown;

function factoryOf(module: Readonly<Record<string, unknown>>, { name, factory }: AdapterPackage): Factory {
  const names = Object.keys(module).filter(
    (key) => /^create\w*Adapter$/.test(key) && typeof module[key] === 'function',
  );
  const [only, another] = names;
  const chosen = factory ?? (another === undefined ? only : undefined);
  if (chosen !== undefined && typeof module[chosen] === 'function') return module[chosen] as Factory;
  const said = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  throw new MoiraiError('platform_package', `which export of ${name} makes its adapter? ${said}; set factory`);
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
