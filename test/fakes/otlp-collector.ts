import { type HttpFake, type RecordedRequest, sendJson, startHttpFake } from './http-fake.ts';

/** A span as it arrived. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly began: number;
  readonly ended: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error: string | null;
}

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code: number; readonly message?: string };
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const ERROR = 2;

/** An OpenTelemetry collector that takes OTLP as JSON over HTTP, and nothing else. */
export class OtlpCollector {
  readonly #fake: HttpFake;

  private constructor(fake: HttpFake) {
    this.#fake = fake;
  }

  /** With `hang` it takes everything and never answers. */
  static async start(how: { hang?: true } = {}): Promise<OtlpCollector> {
    const fake = await startHttpFake(async ({ path, headers }, response) => {
      if (how.hang) return;
      const known = path === '/v1/traces' && headers['content-type'] === 'application/json';
      sendJson(response, known ? 200 : 404, {});
    });
    return new OtlpCollector(fake);
  }

  get url(): string {
    return this.#fake.url;
  }

  get requests(): readonly RecordedRequest[] {
    return this.#fake.requests;
  }

  get resources(): Readonly<Record<string, unknown>>[] {
    return this.#bodies().flatMap((body) =>
      body.resourceSpans.map(({ resource }) => attributesOf(resource.attributes)),
    );
  }

  get spans(): CollectedSpan[] {
    return this.#bodies()
      .flatMap((body) => body.resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(toSpan)));
  }

  named(name: string): CollectedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  close(): Promise<void> {
    return this.#fake.close();
  }

  #bodies(): OtlpBody[] {
    return this.#fake.requests.map(({ raw }) => JSON.parse(raw) as OtlpBody);
  }
}

function toSpan({ name, traceId, spanId, parentSpanId, ...rest }: OtlpSpan): CollectedSpan {
  return {
    ...{ name, traceId, spanId, parentSpanId: parentSpanId ?? null },
    began: Number(rest.startTimeUnixNano) / 1e6,
    ended: Number(rest.endTimeUnixNano) / 1e6,
    attributes: attributesOf(rest.attributes),
    error: rest.status.code === ERROR ? (rest.status.message ?? '') : null,
  };
}

/** Every value comes as the one field of an object that says what it is. */
function attributesOf(pairs: OtlpSpan['attributes']): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}
