import { withDeadline } from './deadline.ts';
import type { Redact } from './redaction.ts';
import { SendFailure } from './send-failure.ts';

const RETRY_MS = 1000;
/** More than any answer of an API has that is not a file. */
const MOST_ANSWER_BYTES = 4 * 1024 * 1024;

/** An answer, read as a whole. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON it holds; the text itself where it holds none; null for nothing. */
  readonly body: unknown;
}

export interface HttpCall {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly body?: NonNullable<RequestInit['body']>;
  /** How large the answer may be, where it brings many messages at once; 4 MB unless said. */
  readonly mostBytes?: number;
}

/**
 * Makes one request and reads the answer, whatever its status. The host is never left: a redirect is an answer. Throws
 * what `unanswered` understands.
 */
export async function callHttp(url: string, call: HttpCall, ms: number, signal: AbortSignal): Promise<HttpAnswer> {
  const { method = 'GET', headers = {}, json, mostBytes = MOST_ANSWER_BYTES } = call;
  const body = json === undefined ? call.body : JSON.stringify(json);
  return await withDeadline(signal, ms, async (deadline) => {
    const response = await fetch(url, {
      ...{ method, redirect: 'manual', signal: deadline },
      headers: { accept: 'application/json', ...(json === undefined ? {} : JSON_HEADER), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const text = Buffer.from(await readBytes(response, mostBytes)).toString('utf8');
    return { status: response.status, headers: response.headers, body: parsed(text) };
  });
}

const JSON_HEADER = { 'content-type': 'application/json' };

function parsed(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The bytes of an answer; throws `SendFailure` as soon as there are more than allowed, whatever the answer says. */
export async function readBytes(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (Number(response.headers.get('content-length') ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge(maxBytes);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Fetches a file; throws `SendFailure`. */
export async function downloadFrom(
  url: string,
  headers: Readonly<Record<string, string>>,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const response = await fetch(url, { headers, redirect: 'manual', signal });
  if (response.ok) return await readBytes(response, maxBytes);
  await response.body?.cancel();
  const mayPass = response.status >= 500 || response.status === 429;
  throw new SendFailure(`the file was not given: ${response.status}`, mayPass ? RETRY_MS : null);
}

function tooLarge(maxBytes: number): SendFailure {
  return new SendFailure(`the file is larger than ${maxBytes} bytes`, null, 'too_large');
}

/** Why a request got no answer: `transient` where the server cannot have seen it, else `uncertain`. */
export function unanswered(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  const code = codeOf(thrown);
  const isUnsent = code !== null && UNSENT.has(code);
  const reason = redact(code ?? (thrown instanceof Error ? thrown.name : 'unknown'));
  return isUnsent
    ? new SendFailure(`the server cannot be reached: ${reason}`, RETRY_MS, 'transient')
    : new SendFailure(`the server gave no answer: ${reason}`, RETRY_MS, 'uncertain');
}

/** What fails before anything of the request is on its way. */
const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Only names and codes: messages of network errors quote addresses, which may hold secrets. */
function codeOf(thrown: unknown): string | null {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { code } = error as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return null;
}

/** How long an answer asks to wait, in milliseconds; null when it does not say. */
export function retryAfter(headers: Headers, now: number): number | null {
  const written = headers.get('retry-after');
  if (written === null) return null;
  const seconds = Number(written);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const at = Date.parse(written);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
