import { MoiraiError } from '../errors/moirai-error.ts';
import type { Path } from '../settings/read-settings.ts';

/** One thing that is wrong with the configuration. */
export interface Problem {
  readonly file: string;
  /** From 1; null where the file does not show it. */
  readonly line: number | null;
  readonly column: number | null;
  /** The key, as in `gateway.port` or `hooks.webhooks[0].url`; empty for the file as a whole. */
  readonly path: string;
  /** What is wrong with it, as a sentence without its end. */
  readonly message: string;
  /** The valid key that was probably meant. */
  readonly nearest: string | null;
}

/** All problems as one error: a line for each, in the order of the file. */
export function configInvalid(found: readonly Problem[], cause?: unknown): MoiraiError {
  const problems = found.toSorted(byPlace);
  const lines = problems.map(problemLine);
  const message = lines.length === 1 ? lines[0]! : [`${lines.length} problems`, ...lines].join('\n');
  return new MoiraiError('config_invalid', message, { details: { problems }, cause });
}

function byPlace(a: Problem, b: Problem): number {
  return a.file.localeCompare(b.file) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** The problems an error of `configInvalid` tells of. */
export function problemsOf(error: MoiraiError): readonly Problem[] {
  return (error.details.problems ?? []) as readonly Problem[];
}

/** `config.yaml:3:5 gateway.prot: no such setting; did you mean "port"?` */
export function problemLine({ file, line, column, path, message }: Problem): string {
  const place = line === null ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place} ${message}` : `${place} ${path}: ${message}`;
}

export function dotted(path: Path): string {
  const parts = path.map((part, i) => {
    const isPlain = typeof part === 'string' && /^[\w-]+$/.test(part);
    if (i === 0) return isPlain ? part : JSON.stringify(part);
    return isPlain ? `.${part}` : `[${JSON.stringify(part)}]`;
  });
  return parts.join('');
}
