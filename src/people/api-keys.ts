import { createHash, randomBytes } from 'node:crypto';
import type { ApiScope } from '../lifecycle/api-scopes.ts';
import type { Store } from '../store/port.ts';

/** What our own keys begin with, so that people and scanners for secrets recognise them. */
const PREFIX = 'moirai_';
const KEY_BYTES = 32;
const FORM = /^moirai_[A-Za-z0-9_-]{43}$/;

/** Somebody who may ask, as far as HTTP goes. */
export interface ApiCaller {
  /** Which credential asks, fit to be kept: never the key itself. */
  readonly credential: string;
  /** What the key is called; null for `gateway.api_key` and for clients of this machine while no key is set. */
  readonly name: string | null;
  readonly scopes: readonly ApiScope[];
}

/** Clients on this machine while no key is set: the operator's own. */
export const LOOPBACK_CALLER: ApiCaller = { credential: 'loopback', name: null, scopes: ['admin'] };

/** The keys of the configuration. */
export interface ConfiguredKeys {
  readonly apiKey: string | null;
  readonly keys?: readonly { readonly name: string; readonly key: string; readonly scopes: readonly ApiScope[] }[];
}

/** Adds a key to the store and returns it: it is shown once, and only its hash is kept. Throws `api_key_exists`. */
export async function addApiKey(store: Store, name: string, scopes: readonly ApiScope[]): Promise<string> {
  const key = PREFIX + randomBytes(KEY_BYTES).toString('base64url');
  await store.write('addApiKey', { name, scopes, hash: hashApiKey(Buffer.from(key)) });
  return key;
}

/** Whether a text has the form of the keys that `moirai keys add` makes, valid or not. */
export function isOwnKey(text: string): boolean {
  return FORM.test(text);
}

/**
 * One pass of SHA-256 is enough for 256 random bits, which nobody can try through. Two keys of one length or another are
 * looked up by their hash, so that the time it takes says nothing about where they differ.
 */
function hashApiKey(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Finds out whose key a request carries: those of the configuration first, then those of the store. */
export class ApiKeys {
  #configured: ReadonlyMap<string, ApiCaller>;
  readonly #store: Store | null;

  constructor(configured: ConfiguredKeys, store: Store | null) {
    this.#store = store;
    this.#configured = byHash(configured);
  }

  /** Other keys of the configuration, from the next request on. */
  use(configured: ConfiguredKeys): void {
    this.#configured = byHash(configured);
  }

  /**
   * Whether every request needs a key. Keys of the store alone do not make it so: they let others in, and shut the
   * programs of this machine out as little as before.
   */
  get required(): boolean {
    return this.#configured.size > 0;
  }

  /** Null for a key that is nobody's. A key may have letters that take more than one byte: bytes are what was sent. */
  async find(key: Buffer): Promise<ApiCaller | null> {
    const hash = hashApiKey(key);
    const configured = this.#configured.get(hash);
    if (configured !== undefined) return configured;
    if (this.#store === null || !isOwnKey(key.toString('latin1'))) return null;
    const kept = await this.#store.read('findApiKey', { hash });
    return kept === null ? null : { credential: credentialOf(hash), name: kept.name, scopes: kept.scopes };
  }
}

function byHash({ apiKey, keys = [] }: ConfiguredKeys): ReadonlyMap<string, ApiCaller> {
  const all: [string, ApiCaller][] = keys.map(({ name, key, scopes }) => entryOf(key, { name, scopes }));
  if (apiKey !== null) all.push(entryOf(apiKey, { name: null, scopes: ['admin'] }));
  return new Map(all);
}

function entryOf(key: string, facts: Omit<ApiCaller, 'credential'>): [string, ApiCaller] {
  const hash = hashApiKey(Buffer.from(key, 'utf8'));
  return [hash, { credential: credentialOf(hash), ...facts }];
}

function credentialOf(hash: string): string {
  return `key:${hash.slice(0, 16)}`;
}
