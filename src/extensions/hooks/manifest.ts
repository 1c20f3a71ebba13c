import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseDuration } from '../../lifecycle/duration.ts';
import { assertPattern } from '../../lifecycle/events.ts';

/** What a HOOK.yaml says. */
export interface HookManifest {
  readonly name: string;
  readonly description: string | null;
  readonly events: readonly string[];
  /** Null leaves it to the configuration. */
  readonly timeoutMs: number | null;
  readonly enabled: boolean;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LONGEST_TIMEOUT_MS = 3_600_000;
const MOST_BYTES = 64 * 1024;

/** Reads a HOOK.yaml. Keys it does not know are left to whoever wrote them. Throws `hook_invalid`, `unknown_event`. */
export async function readManifest(file: string, folderName: string): Promise<HookManifest> {
  const values = mappingOf(await readFile(file, 'utf8'));
  const { name = folderName, description = null, events, timeout = null, enabled = true } = values;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid('name is letters, digits, dots, dashes and underscores, at most 64');
  }
  if (description !== null && typeof description !== 'string') throw invalid('description is a text');
  if (typeof enabled !== 'boolean') throw invalid('enabled is true or false');
  return { name, description, events: eventsOf(events), timeoutMs: timeoutOf(timeout), enabled };
}

function mappingOf(text: string): Record<string, unknown> {
  if (text.length > MOST_BYTES) throw invalid('it is larger than 64 KiB');
  let values: unknown;
  try {
    values = parse(text, { version: '1.2', schema: 'core', logLevel: 'error', maxAliasCount: 20 });
  } catch (cause) {
    const star = /\*[\s,\]]/.test(text) ? '; a * needs quotes' : '';
    throw invalid(`it is no YAML: ${firstLine(cause)}${star}`, cause);
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values)) throw invalid('it has no keys');
  return values as Record<string, unknown>;
}

function eventsOf(events: unknown): string[] {
  const list = typeof events === 'string' ? [events] : events;
  if (!Array.isArray(list) || list.length === 0) throw invalid('events is a list of event types, and not empty');
  for (const pattern of list) assertPattern(String(pattern));
  return list.map(String);
}

function timeoutOf(timeout: unknown): number | null {
  if (timeout === null) return null;
  const ms = parseDuration(timeout as string);
  if (ms < 1 || ms > LONGEST_TIMEOUT_MS) throw invalid('timeout is from 1ms to 1h');
  return ms;
}

function firstLine(thrown: unknown): string {
  const [line = ''] = (thrown instanceof Error ? thrown.message : String(thrown)).split('\n');
  return line.replace(/:$/, '');
}

function invalid(fault: string, cause?: unknown): MoiraiError {
  return new MoiraiError('hook_invalid', `HOOK.yaml: ${fault}`, { cause });
}
