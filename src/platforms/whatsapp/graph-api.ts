import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../fields.ts';
import { callHttp, type HttpAnswer, type HttpCall, retryAfter } from '../http.ts';
import type { PlatformRuntime } from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';

const GRAPH = 'https://graph.facebook.com';
const MINUTE_MS = 60_000;

export interface GraphOptions {
  /** The number that speaks, by its id at Meta. */
  readonly phoneNumberId: string;
  readonly token: string;
  /** Another host for everything; null for Meta's own. */
  readonly apiRoot: string | null;
  /** As `v25.0`. */
  readonly apiVersion: string;
  /** What else must be in no error. */
  readonly secrets: readonly string[];
  readonly runtime: PlatformRuntime;
}

/** Meta said no. */
export class GraphError extends Error {
  readonly status: number;
  /** Null where the answer was none of the Graph API's. */
  readonly code: number | null;
  readonly subcode: number | null;
  /** How long the headers ask to wait; null when they do not say. */
  readonly waitMs: number | null;

  constructor({ status, headers, body }: HttpAnswer, now: number) {
    const error = fieldsOf(fieldsOf(body)?.error);
    super(reasonIn(error) ?? `the answer ${status} is none of the Graph API`);
    this.name = 'GraphError';
    this.status = status;
    this.code = integerOf(error?.code);
    this.subcode = integerOf(error?.error_subcode);
    this.waitMs = askedWait(headers, now);
  }
}

/** The Graph API as far as one number of WhatsApp uses it. */
export class GraphApi {
  readonly phoneNumberId: string;
  readonly runtime: PlatformRuntime;
  /** Takes the secrets out of a text. */
  readonly redact: Redact;
  /** The one host for everything; null where Meta's own are used. */
  readonly apiRoot: string | null;
  readonly #base: string;
  readonly #token: string;

  constructor({ phoneNumberId, token, apiRoot, apiVersion, secrets, runtime }: GraphOptions) {
    this.phoneNumberId = phoneNumberId;
    this.runtime = runtime;
    this.redact = redaction(token, ...secrets);
    this.apiRoot = apiRoot;
    this.#base = `${apiRoot ?? GRAPH}/${apiVersion}`;
    this.#token = token;
  }

  /** What a request has to carry. */
  get authorization(): Readonly<Record<string, string>> {
    return { authorization: `Bearer ${this.#token}` };
  }

  /** One call; throws `GraphError` for a refusal, and what `unanswered` understands. */
  async call(path: string, call: HttpCall, ms: number, signal: AbortSignal): Promise<Fields> {
    const headers = { ...call.headers, ...this.authorization };
    const answer = await callHttp(`${this.#base}/${path}`, { ...call, headers }, ms, signal);
    const body = fieldsOf(answer.body);
    if (answer.status >= 200 && answer.status < 300 && body !== null && body.error === undefined) return body;
    throw new GraphError(answer, this.runtime.now());
  }
}

function reasonIn(error: Fields | null): string | null {
  if (error === null) return null;
  const details = textOf(fieldsOf(error.error_data)?.details, 300);
  const message = textOf(error.message, 300) ?? 'refused';
  return details === null || details === '' ? message : `${message}: ${details}`;
}

/** `retry-after`, or the minutes that the usage headers of the Graph API give. */
function askedWait(headers: Headers, now: number): number | null {
  const direct = retryAfter(headers, now);
  if (direct !== null) return direct;
  const written = headers.get('x-business-use-case-usage');
  if (written === null) return null;
  const minutes = Object.values(fieldsIn(written))
    .flatMap(listOf)
    .map((usage) => integerOf(fieldsOf(usage)?.estimated_time_to_regain_access) ?? 0);
  const most = Math.max(0, ...minutes);
  return most === 0 ? null : most * MINUTE_MS;
}

function fieldsIn(json: string): Fields {
  try {
    return fieldsOf(JSON.parse(json)) ?? {};
  } catch {
    return {};
  }
}
