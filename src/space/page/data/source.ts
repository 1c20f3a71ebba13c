import { AnswerError } from './answer-error.ts';
import type { KeyRing } from './key-ring.ts';

/** One gateway to ask, at this server or passed on by it. */
export interface Source {
  readonly id: string;
  readonly name: string;
  /** What stands before every path: '' or '/gateways/1'. */
  readonly base: string;
  /**
   * Asks, with the key. Answers of any other status are given back as they are; 401 and 429 make the page ask the
   * person for the key, and are thrown as `AnswerError`. Throws `TypeError` when there is no answer.
   */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

export interface Place {
  readonly name: string;
  readonly base: string;
}

export type Fetcher = (input: string, init?: RequestInit) => Promise<Response>;

export function makeSource({ name, base }: Place, ring: KeyRing, fetcher: Fetcher): Source {
  const ask = async (path: string, init?: RequestInit): Promise<Response> => {
    const key = ring.headers();
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(key)) headers.set(name, value);
    const response = await fetcher(`${base}${path}`, { ...init, headers, credentials: 'omit', cache: 'no-store' });
    if (response.status === 401 || response.status === 429) {
      ring.refused(key);
      throw await AnswerError.from(response);
    }
    ring.accepted(key);
    return response;
  };
  return { id: base === '' ? 'here' : base, name, base, fetch: ask };
}

/** Asks for JSON; everything but a success is thrown as `AnswerError`. */
export async function askJson<T>(source: Source, path: string, init?: RequestInit): Promise<T> {
  const headers = { accept: 'application/json', ...init?.headers };
  const response = await source.fetch(path, { ...init, headers });
  if (!response.ok) throw await AnswerError.from(response);
  return (await response.json()) as T;
}

/** Sends JSON, and reads JSON. */
export function postJson<T>(source: Source, path: string, body: unknown): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  return askJson<T>(source, path, { method: 'POST', headers, body: JSON.stringify(body) });
}
