import type { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** Where a memory service is, and how to get in. */
export interface ServiceOptions {
  /** Null for the service's own address. */
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
}

const TIMEOUT_MS = 30_000;
/** Down, overloaded, or locked to us: the operator mends it, and nothing of what waits is at fault. */
const UNAVAILABLE = new Set([401, 402, 403, 408, 425, 429]);

/**
 * Speaks JSON with a memory service. Throws `subscriber_unavailable` when the service is down, does not answer, or refuses
 * the key, and `subscriber_failed` for every other answer. No error carries the key or what was said.
 */
export class JsonClient {
  readonly #name: string;
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(name: string, baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#name = name;
    this.#base = baseOf(name, baseUrl);
    this.#headers = { ...headers, 'content-type': 'application/json', accept: 'application/json' };
  }

  /** Posts, and takes from the answer what is needed of it. */
  async ask<S extends z.ZodType>(
    schema: S,
    path: readonly string[],
    body: unknown,
    signal: AbortSignal,
    query = '',
  ): Promise<z.output<S>> {
    const answer = schema.safeParse(await this.post(path, body, signal, query));
    if (answer.success) return answer.data;
    throw new MoiraiError('subscriber_failed', `${this.#name} answered what it should not`, { cause: answer.error });
  }

  /** Posts to a path, each part of it escaped. */
  async post(path: readonly string[], body: unknown, signal: AbortSignal, query = ''): Promise<unknown> {
    const address = new URL(this.#base);
    const parts = path.map((part) => encodeURIComponent(part)).join('/');
    address.pathname = `${address.pathname.replace(/\/$/, '')}/${parts}`;
    address.search = query;
    const request = { method: 'POST', headers: this.#headers, body: JSON.stringify(body), redirect: 'manual' } as const;
    // Ours comes before the courier's: a service that hangs is down, which is no failure of an event.
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { status, text } = await this.#send(address, { ...request, signal: deadline });
    if (status >= 200 && status < 300) return this.#parse(text);
    const code = UNAVAILABLE.has(status) || status >= 500 ? 'subscriber_unavailable' : 'subscriber_failed';
    throw new MoiraiError(code, `${this.#name} answered ${status}`, { details: { status } });
  }

  async #send(address: URL, request: RequestInit): Promise<{ status: number; text: string }> {
    try {
      const response = await fetch(address, request);
      return { status: response.status, text: await response.text() };
    } catch (thrown) {
      throw new MoiraiError('subscriber_unavailable', `${this.#name} cannot be reached`, { cause: thrown });
    }
  }

  #parse(text: string): unknown {
    try {
      return text === '' ? null : JSON.parse(text);
    } catch (thrown) {
      throw new MoiraiError('subscriber_failed', `${this.#name} did not answer with JSON`, { cause: thrown });
    }
  }
}

function baseOf(name: string, address: string): URL {
  const url = URL.parse(address);
  // A password in it could not be sent: `fetch` refuses such an address.
  if (url !== null && /^https?:$/.test(url.protocol) && url.password === '' && url.username === '') return url;
  throw new MoiraiError('memory_provider', `the address of ${name} is no http or https address without a password`);
}

/** A key that the service cannot do without. */
export function keyOf(name: string, { apiKey }: ServiceOptions): string {
  if (apiKey !== null && apiKey !== '') return apiKey;
  throw new MoiraiError('memory_provider', `${name} needs an API key`);
}
