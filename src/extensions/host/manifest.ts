import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseDuration } from '../../lifecycle/duration.ts';

/** What HOOK.yaml and plugin.yaml have in common. */
export interface Manifest {
  readonly name: string;
  readonly description: string | null;
  /** For one event; null leaves it to the gateway's configuration. */
  readonly timeoutMs: number | null;
  readonly enabled: boolean;
}

export type Mapping = Readonly<Record<string, unknown>>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LONGEST_TIMEOUT_MS = 3_600_000;
const MOST_BYTES = 64 * 1024;

/** A manifest that is being read: what it says, and how to refuse it. */
export class ManifestReader {
  readonly file: string;
  readonly text: string;
  readonly #code: ErrorCode;

  private constructor(file: string, text: string, code: ErrorCode) {
    this.file = file;
    this.text = text;
    this.#code = code;
  }

  static async open(folder: string, file: string, code: ErrorCode): Promise<ManifestReader> {
    return new ManifestReader(join(folder, file), await readFile(join(folder, file), 'utf8'), code);
  }

  /** Unknown keys are ignored. An empty file has no values. */
  values(): Mapping {
    if (this.text.length > MOST_BYTES) throw this.invalid('it is larger than 64 KiB');
    let values: unknown;
    try {
      values = parse(this.text, { version: '1.2', schema: 'core', logLevel: 'error', maxAliasCount: 20 });
    } catch (cause) {
      const [line = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
      const star = /\*[\s,\]]/.test(this.text) ? '; a * needs quotes' : '';
      throw this.invalid(`it is no YAML: ${line.replace(/:$/, '')}${star}`, cause);
    }
    return this.mapping(values ?? {}, 'it has no keys');
  }

  common(values: Mapping): Manifest {
    const { name = basename(join(this.file, '..')), description = null, timeout = null, enabled = true } = values;
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw this.invalid('name is letters, digits, dots, dashes and underscores, at most 64');
    }
    if (description !== null && typeof description !== 'string') throw this.invalid('description is a text');
    if (typeof enabled !== 'boolean') throw this.invalid('enabled is true or false');
    return { name, description, enabled, timeoutMs: this.duration(timeout, 'timeout', LONGEST_TIMEOUT_MS) };
  }

  mapping(value: unknown, fault: string): Mapping {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Mapping;
    throw this.invalid(fault);
  }

  duration(value: unknown, key: string, longestMs: number): number | null {
    if (value === null || value === undefined) return null;
    const ms = parseDuration(value as string);
    if (ms < 1 || ms > longestMs) throw this.invalid(`${key} is from 1ms to ${longestMs / 1000}s`);
    return ms;
  }

  invalid(fault: string, cause?: unknown): MoiraiError {
    return new MoiraiError(this.#code, `${basename(this.file)}: ${fault}`, { cause });
  }
}
