import type { PlatformRuntime } from '../platform.ts';
import type { Redact } from '../redaction.ts';

/** What adapters log with. */
export interface AdapterLogger {
  child(prefix: string): AdapterLogger;
  debug(message: string, ...args: unknown[]): void;
  info(message: string, ...args: unknown[]): void;
  warn(message: string, ...args: unknown[]): void;
  error(message: string, ...args: unknown[]): void;
}

const LONGEST = 500;

/** Tells people what goes wrong in an adapter; the rest is for its authors. */
export function adapterLogger({ warn }: PlatformRuntime, redact: Redact): AdapterLogger {
  const tell = (message: string, ...args: unknown[]): void => {
    const details = args.map((arg) => redact(described(arg)).slice(0, LONGEST));
    warn(redact(String(message)).slice(0, LONGEST), details.length === 0 ? undefined : { details });
  };
  const logger: AdapterLogger = {
    child: () => logger,
    debug: () => undefined,
    info: () => undefined,
    warn: tell,
    error: tell,
  };
  return logger;
}

function described(arg: unknown): string {
  try {
    return typeof arg === 'string' || arg instanceof Error ? String(arg) : (JSON.stringify(arg) ?? '');
  } catch {
    return 'something that cannot be written';
  }
}
