import { setTimeout as delay } from 'node:timers/promises';
import type { MiddlewareHandler } from 'hono';
import { MoiraiError } from '../errors/moirai-error.ts';
import { type ApiCaller, ApiKeys, type ConfiguredKeys, isOwnKey, LOOPBACK_CALLER } from '../people/api-keys.ts';
import type { Store } from '../store/port.ts';
import type { ApiContext, ApiEnv } from './api.ts';
import { type Client, TrustedProxies } from './client-address.ts';
import { FailedKeys } from './failed-keys.ts';
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts';
import { PLATFORM_PATH } from './routes/platforms.ts';

/** Without any key of the configuration, clients on this machine are admitted without one. */
export interface AccessRules extends ConfiguredKeys {
  /** Origins of pages that may call, beside the gateway's own. */
  readonly allowedOrigins: readonly string[];
  /** Proxies that are believed about where a request came from; none unless given. */
  readonly trustedProxies?: readonly string[];
  readonly page?: PageHook;
}

/**
 * The page that people open in a browser, which is not ours to make: the file at a path, or that it is still the one whose
 * `ETag` is known there. Null for a path that is none of its own.
 */
export type PageHook = (path: string, knownTags: string | undefined) => Response | null;

/** How long an address that gave too many wrong keys waits for the answer to another one. */
const SLOWED_MS = 500;

/**
 * Lets a request in, or not. `/health` is for probes that know nothing of us, and platforms prove themselves. A page of another origin is refused
 * whatever it knows; then the key decides or, without one, that both ends are on this machine. The `Host` is looked at
 * because a page may call its own name, made to mean our address. Files of our own page are answered here: it asks people
 * for the key, so it comes before the key, and nothing else is reached on that way. Keys beside those of the configuration
 * are in the store; `keys` are both of them, where they may change.
 */
export function admit(
  rules: AccessRules,
  store: Store | null,
  keys = new ApiKeys(rules, store),
): MiddlewareHandler<ApiEnv> {
  const { allowedOrigins, trustedProxies = [], page } = rules;
  const proxies = new TrustedProxies(trustedProxies);
  const failures = new FailedKeys();
  return async (c, next) => {
    if (c.req.path === '/health' || PLATFORM_PATH.test(c.req.path)) return next();
    const { origin } = c.env.incoming.headers;
    if (origin !== undefined) {
      assertOrigin(c, origin, allowedOrigins);
      nameOrigin(c, origin);
      const isPreflight = c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
      if (isPreflight) return answerPreflight(c);
    }
    const client = proxies.clientOf(c.env.incoming);
    const given = givenKey(c);
    // A key of the store counts wherever it comes from, and one that was revoked does not become nobody's.
    const keyed = keys.required || (given !== null && isOwnKey(given.toString('latin1')));
    if (!keyed) assertLocal(c, client);
    const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
    const file = isRead ? page?.(c.req.path, c.req.header('if-none-match')) : null;
    if (file) return c.newResponse(file.body, file);
    c.set('caller', keyed ? await identify(keys, given, client, failures) : LOOPBACK_CALLER);
    return next();
  };
}

function assertOrigin(c: ApiContext, origin: string, allowed: readonly string[]): void {
  const host = c.env.incoming.headers.host?.toLowerCase();
  const own = host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
  if (own || allowed.includes(origin)) return;
  throw new MoiraiError('forbidden_origin', `pages of ${origin} may not call this gateway`);
}

/** Lets the page read the answer, also when it is an error. */
function nameOrigin(c: ApiContext, origin: string): void {
  const { outgoing } = c.env;
  outgoing.setHeader('Access-Control-Allow-Origin', origin);
  outgoing.setHeader('Access-Control-Expose-Headers', 'ETag, x-moirai-session, x-moirai-turn');
  outgoing.setHeader('Vary', 'Origin');
}

/** A browser asks before it sends; the key comes with what it sends. */
function answerPreflight(c: ApiContext): Response {
  c.header('Access-Control-Allow-Methods', 'GET, POST');
  c.header(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, x-moirai-conversation',
  );
  c.header('Access-Control-Max-Age', '600');
  return c.body(null, 204);
}

function assertLocal(c: ApiContext, { address, proxied }: Client): void {
  if (proxied || wasPassedOn(c) || !isLoopbackAddress(address)) {
    throw new MoiraiError('forbidden_client', `no key is set, and ${address} is another machine`);
  }
  const { host = '' } = c.env.incoming.headers;
  if (!isLoopbackHost(host)) throw new MoiraiError('forbidden_host', `"${host}" is not a name of this machine`);
}

/** A proxy on this machine makes strangers look like programs of it; these headers are written by proxies alone. */
const PROXY_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];

function wasPassedOn(c: ApiContext): boolean {
  return PROXY_HEADERS.some((name) => c.env.incoming.headers[name] !== undefined);
}

/** As it was sent: headers are read byte by byte, and a key may have letters that take more than one. */
function givenKey(c: ApiContext): Buffer | null {
  const given = /^Bearer +(\S.*)$/i.exec(c.env.incoming.headers.authorization ?? '')?.[1]?.trim();
  return given === undefined ? null : Buffer.from(given, 'latin1');
}

/**
 * A right key is let in whoever else shares its address: behind a proxy, that is everybody. Wrong ones are slowed down by
 * address.
 */
async function identify(
  keys: ApiKeys,
  given: Buffer | null,
  { address }: Client,
  failures: FailedKeys,
): Promise<ApiCaller> {
  if (given === null) throw new MoiraiError('unauthorized', 'the request has no key');
  const caller = await keys.find(given);
  if (caller !== null) return caller;
  const wait = failures.waitSeconds(address, Date.now());
  failures.note(address, Date.now());
  if (wait === 0) throw new MoiraiError('unauthorized', 'the key is wrong');
  await delay(SLOWED_MS);
  throw new MoiraiError('too_many_failures', `too many wrong keys came from ${address}`, {
    details: { retryAfterSeconds: wait },
  });
}

/** Headers that keep browsers from doing more with an answer than it is for. What an answer says of itself counts. */
const PROTECTION = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cache-Control', 'no-store'],
] as const;

export const protect: MiddlewareHandler<ApiEnv> = (c, next) => {
  for (const [name, value] of PROTECTION) c.env.outgoing.setHeader(name, value);
  return next();
};
