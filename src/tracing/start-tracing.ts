import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import type { Tracer } from './tracer.ts';

/** Null when no traces are wanted: then nothing of it is loaded either. */
export async function startTracing(config: TracingConfig, version: string, log: Logger): Promise<Tracer | null> {
  const { endpoint } = config;
  if (endpoint === null) return null;
  const { OpenTelemetryTracer } = await import('./open-telemetry.ts');
  return new OpenTelemetryTracer({ ...config, endpoint, version, log });
}
