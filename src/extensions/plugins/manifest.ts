import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseDuration } from '../../lifecycle/duration.ts';

/** What a plugin.yaml says. */
export interface PluginManifest {
  readonly name: string;
  readonly description: string | null;
  readonly version: string | null;
  readonly enabled: boolean;
  /** The module, below the folder; null leaves it to the usual names. */
  readonly main: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  /** For one event; null leaves it to the gateway's configuration. */
  readonly timeoutMs: number | null;
  /** For gates that do not say it themselves. */
  readonly gateTimeoutMs: number | null;
  /** How much its thread may keep. */
  readonly memoryMb: number;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LONGEST_TIMEOUT_MS = 3_600_000;
const LONGEST_GATE_MS = 60_000;
const MEMORY_MB = { usual: 256, least: 32, most: 4096 };
const MOST_BYTES = 64 * 1024;

/** Reads a plugin.yaml. Keys it does not know are left to whoever wrote them. Throws `plugin_invalid`. */
export async function readManifest(file: string, folderName: string): Promise<PluginManifest> {
  const values = mappingIn(await readFile(file, 'utf8'));
  const { name = folderName, description = null, version = null, enabled = true, main = null, config = {} } = values;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid('name is letters, digits, dots, dashes and underscores, at most 64');
  }
  if (description !== null && typeof description !== 'string') throw invalid('description is a text');
  if (version !== null && typeof version !== 'string' && typeof version !== 'number')
    throw invalid('version is a text');
  if (typeof enabled !== 'boolean') throw invalid('enabled is true or false');
  if (main !== null && (typeof main !== 'string' || main === '')) throw invalid('main is the name of a file');
  if (!isMapping(config)) throw invalid('config is a mapping');
  const { timeout = null, gates = {}, memory = MEMORY_MB.usual } = values;
  if (!isMapping(gates)) throw invalid('gates is a mapping, as {timeout: 1s}');
  return {
    ...{ name, description, version: version === null ? null : String(version), enabled, main, config },
    timeoutMs: durationOf(timeout, 'timeout', LONGEST_TIMEOUT_MS),
    gateTimeoutMs: durationOf(gates.timeout ?? null, 'gates.timeout', LONGEST_GATE_MS),
    memoryMb: memoryOf(memory),
  };
}

function mappingIn(text: string): Record<string, unknown> {
  if (text.length > MOST_BYTES) throw invalid('it is larger than 64 KiB');
  let values: unknown;
  try {
    values = parse(text, { version: '1.2', schema: 'core', logLevel: 'error', maxAliasCount: 20 });
  } catch (cause) {
    const [line = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    throw invalid(`it is no YAML: ${line.replace(/:$/, '')}`, cause);
  }
  // An empty file says nothing, which is enough.
  if (values === null) return {};
  if (!isMapping(values)) throw invalid('it has no keys');
  return values;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function durationOf(value: unknown, key: string, longestMs: number): number | null {
  if (value === null) return null;
  const ms = parseDuration(value as string);
  if (ms < 1 || ms > longestMs) throw invalid(`${key} is from 1ms to ${longestMs / 1000}s`);
  return ms;
}

function memoryOf(value: unknown): number {
  const { least, most } = MEMORY_MB;
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  throw invalid(`memory is a number of megabytes, from ${least} to ${most}`);
}

function invalid(fault: string, cause?: unknown): MoiraiError {
  return new MoiraiError('plugin_invalid', `plugin.yaml: ${fault}`, { cause });
}
