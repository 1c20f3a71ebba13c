import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';

/** A finished piece of work, as a trace shows it. Names, numbers and codes only: what people write is in none of it. */
export interface Span {
  readonly name: string;
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them; the same never twice. */
  readonly id: string;
  readonly parentId: string | null;
  /** Where it stands between us and others. */
  readonly kind: 'server' | 'internal' | 'client';
  /** Milliseconds since 1970. */
  readonly began: number;
  readonly ms: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The code of what went wrong; null when nothing did. */
  readonly error: string | null;
}

/** Where traces go. */
export interface Tracer {
  /** Never waits and never throws: what cannot be taken is dropped. */
  record(span: Span): void;
  /** Hands over what is left, for a short time. */
  close(): Promise<void>;
}

/** Null when no traces are wanted: then nothing of it is loaded either. */
export async function startTracing(config: TracingConfig, version: string, log: Logger): Promise<Tracer | null> {
  const { endpoint } = config;
  if (endpoint === null) return null;
  const { OpenTelemetryTracer } = await import('./open-telemetry.ts');
  return new OpenTelemetryTracer({ ...config, endpoint, version, log });
}
