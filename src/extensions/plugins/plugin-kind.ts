import { stat } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ExtensionKind, Found, Usable } from '../host/extension-folder.ts';
import { type Manifest, ManifestReader, type Mapping } from '../host/manifest.ts';
import type { GateName } from './api.ts';
import { assertGate, GATE_NAMES, LONGEST_GATE_MS } from './names.ts';
import type { GateOffer } from './offer.ts';

/** What a plugin.yaml says. */
export interface PluginManifest extends Manifest {
  readonly version: string | null;
  /** The module, below the folder; null leaves it to the usual names. */
  readonly main: string | null;
  readonly config: Mapping;
  /** For gates that do not say it themselves. */
  readonly gateTimeoutMs: number | null;
  /** Gates that are there whether its code is loaded or not. */
  readonly gates: GateOffer[];
  /** How much its process may keep on its heap. */
  readonly memoryMb: number;
}

export interface PluginFiles {
  readonly manifest: PluginManifest;
  readonly main: string;
}

export type UsablePlugin = Usable<PluginFiles>;
export type FoundPlugin = Found<PluginFiles>;

const MEMORY_MB = { usual: 256, least: 32, most: 4096 };

export const PLUGIN_KIND: ExtensionKind<PluginFiles> = {
  word: 'plugin',
  manifest: 'plugin.yaml',
  async read(folder) {
    const manifest = readManifest(await openManifest(folder));
    return { manifest, main: await findMain(folder, manifest) };
  },
};

function openManifest(folder: string): Promise<ManifestReader> {
  return ManifestReader.open(folder, PLUGIN_KIND.manifest, 'plugin_invalid');
}

function readManifest(reader: ManifestReader): PluginManifest {
  const values = reader.values();
  const { version = null, main = null, config = {}, gates = {}, memory = MEMORY_MB.usual } = values;
  if (version !== null && typeof version !== 'string' && typeof version !== 'number') {
    throw reader.invalid('version is a text');
  }
  if (main !== null && (typeof main !== 'string' || main === '')) throw reader.invalid('main is the name of a file');
  const { least, most } = MEMORY_MB;
  if (!Number.isInteger(memory) || Number(memory) < least || Number(memory) > most) {
    throw reader.invalid(`memory is a number of megabytes, from ${least} to ${most}`);
  }
  const { timeout, ...declared } = reader.mapping(gates, 'gates is a mapping, as {timeout: 1s}');
  return {
    ...reader.common(values),
    version: version === null ? null : String(version),
    main,
    config: reader.mapping(config, 'config is a mapping'),
    gateTimeoutMs: reader.duration(timeout, 'gates.timeout', LONGEST_GATE_MS),
    gates: declaredIn(reader, declared),
    memoryMb: Number(memory),
  };
}

function declaredIn(reader: ManifestReader, declared: Mapping): GateOffer[] {
  return Object.entries(declared).map(([gate, value]) => {
    assertGate(gate);
    const key = `gates.${gate}`;
    const { on_failure: onFailure = 'open', timeout } = reader.mapping(
      value ?? {},
      `${key} is as {on_failure: closed}`,
    );
    if (onFailure !== 'open' && onFailure !== 'closed') throw reader.invalid(`${key}.on_failure is open or closed`);
    if (gate === 'pre_llm_call' && onFailure === 'closed')
      throw reader.invalid(`${key} only adds context: it cannot be closed`);
    return { gate, onFailure, timeoutMs: reader.duration(timeout, `${key}.timeout`, LONGEST_GATE_MS) };
  });
}

/**
 * The gates that a folder which cannot be used wants closed. Of a plugin.yaml that cannot even be parsed, every gate counts
 * that it names, if it says `on_failure: closed` anywhere.
 */
export async function closedGatesIn(folder: string): Promise<GateName[]> {
  const reader = await openManifest(folder).catch(() => null);
  if (reader === null) return [];
  try {
    const { gates, enabled } = reader.values();
    const isClosed = (name: GateName): boolean =>
      (gates as Record<string, Mapping | null> | null)?.[name]?.on_failure === 'closed';
    return enabled === false ? [] : GATE_NAMES.filter(isClosed);
  } catch {
    return /on_failure['"]?\s*:\s*['"]?closed/.test(reader.text)
      ? GATE_NAMES.filter((name) => reader.text.includes(name))
      : [];
  }
}

const EXTENSIONS = ['ts', 'mts', 'js', 'mjs'];
const MAINS = ['index', 'plugin'].flatMap((name) => EXTENSIONS.map((extension) => `${name}.${extension}`));

async function findMain(folder: string, { main }: PluginManifest): Promise<string> {
  if (main !== null) {
    const file = join(folder, main);
    if (relative(folder, file).startsWith('..')) throw invalid(`main is "${main}", which is outside the folder`);
    if (await isFile(file)) return file;
    throw invalid(`main is "${main}", and there is no such file`);
  }
  for (const name of MAINS) if (await isFile(join(folder, name))) return join(folder, name);
  throw invalid(`there is no module: one of ${MAINS.join(', ')}, or what \`main\` of plugin.yaml names`);
}

function isFile(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
}

function invalid(fault: string): MoiraiError {
  return new MoiraiError('plugin_invalid', fault);
}

/** Where a plugin's module is, for people. */
export function moduleName({ folder, main }: { readonly folder: string; readonly main: string }): string {
  return join(basename(folder), basename(main));
}
