import { type HrTime, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import type { Span, Tracer } from './tracer.ts';

export interface OpenTelemetryOptions extends TracingConfig {
  /** The collector; `/v1/traces` is added unless it is there. */
  readonly endpoint: string;
  readonly version: string;
  readonly log: Logger;
}

/** Spans that wait for the collector; more are dropped. */
const MAX_QUEUE = 2048;
const BATCH = 256;
const EVERY_MS = 2000;
/** A collector has so long for a batch, retries included; stopping waits no longer either. */
const EXPORT_MS = 3000;
const COMPLAIN_EVERY_MS = 60_000;

const KINDS = { server: SpanKind.SERVER, internal: SpanKind.INTERNAL, client: SpanKind.CLIENT } as const;

/** Sends spans to an OpenTelemetry collector, in batches, as JSON over HTTP. */
export class OpenTelemetryTracer implements Tracer {
  /** Of the span that is being made: they were decided elsewhere. */
  #ids = { traceId: '', spanId: '' };
  readonly #provider: TracerProvider;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;

  constructor({ endpoint, serviceName, sample, headers, version, log }: OpenTelemetryOptions) {
    const url = tracesUrl(endpoint);
    const inner = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_MS });
    const exporter = new ComplainingExporter(inner, log);
    const limits = { maxQueueSize: MAX_QUEUE, maxExportBatchSize: BATCH };
    const times = { scheduledDelayMillis: EVERY_MS, exportTimeoutMillis: EXPORT_MS + 1000 };
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
      // By the trace's id: all that work on a turn come to the same decision.
      sampler: new TraceIdRatioBasedSampler(sample),
      idGenerator: { generateTraceId: () => this.#ids.traceId, generateSpanId: () => this.#ids.spanId },
      spanProcessors: [new BatchSpanProcessor({ exporter, ...limits, ...times })],
    });
    this.#tracer = this.#provider.getTracer('moirai', version);
  }

  record({ name, traceId, id, parentId, kind, began, ms, attributes, error }: Span): void {
    this.#ids = { traceId, spanId: id };
    const above = { traceId, spanId: parentId ?? '', traceFlags: TraceFlags.SAMPLED, isRemote: true };
    const context = parentId === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, above);
    const startTime = hrTime(began);
    const span = this.#tracer.startSpan(name, { kind: KINDS[kind], startTime, attributes: { ...attributes } }, context);
    if (error !== null)
      span.setStatus({ code: SpanStatusCode.ERROR, message: error }).setAttribute('error.type', error);
    span.end(hrTime(began + Math.max(0, ms)));
  }

  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, EXPORT_MS);
    });
    // Spans that the collector does not take now are lost, which the exporter has logged.
    await Promise.race([this.#provider.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
  }
}

/** The code with which an exporter says that all went well. */
const TAKEN = 0;

type Exporting = Parameters<SpanExporter['export']>;

/** Logs now and then that the collector does not take the spans, and when it does again. */
class ComplainingExporter implements SpanExporter {
  readonly #inner: SpanExporter;
  readonly #log: Logger;
  #silentUntil = 0;
  #lost = 0;

  constructor(inner: SpanExporter, log: Logger) {
    this.#inner = inner;
    this.#log = log;
  }

  export(spans: Exporting[0], done: Exporting[1]): void {
    this.#inner.export(spans, (result) => {
      if (result.code !== TAKEN) this.#complain(spans.length, result.error);
      else if (this.#lost > 0) this.#rejoice();
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  #complain(spans: number, thrown: Error | undefined): void {
    this.#lost += spans;
    if (performance.now() < this.#silentUntil) return;
    this.#silentUntil = performance.now() + COMPLAIN_EVERY_MS;
    this.#log.warn('the collector does not take traces', { lost_spans: this.#lost, error: thrown?.message ?? null });
  }

  #rejoice(): void {
    this.#log.info('the collector takes traces again', { lost_spans: this.#lost });
    this.#lost = 0;
    this.#silentUntil = 0;
  }
}

/** As the SDK wants it: a number before the start of this process it would take for something else. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}

function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/(?<!\/)\/+$/, '');
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`;
}
