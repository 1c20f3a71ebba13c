import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiContext, ApiEnv } from './api.ts';
import { FailedKeys } from './failed-keys.ts';
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts';
import { PLATFORM_PATH } from './routes/platforms.ts';

export interface AccessRules {
  /** Null admits clients on this machine only. */
  readonly apiKey: string | null;
  /** Origins of pages that may call, beside the gateway's own. */
  readonly allowedOrigins: readonly string[];
  readonly page?: PageHook;
}

/**
 * The page that people open in a browser, which is not ours to make: the file at a path, or that it is still the one whose
 * `ETag` is known there. Null for a path that is none of its own.
 */
export type PageHook = (path: string, knownTags: string | undefined) => Response | null;

/** The credential of clients on this machine while no key is set. */
const LOOPBACK_CREDENTIAL = 'loopback';

/**
 * Lets a request in, or not. `/health` is for probes that know nothing of us, and platforms prove themselves. A page of another origin is refused
 * whatever it knows; then the key decides or, without one, that both ends are on this machine. The `Host` is looked at
 * because a page may call its own name, made to mean our address. Files of our own page are answered here: it asks people
 * for the key, so it comes before the key, and nothing else is reached on that way.
 */
export function admit({ apiKey, allowedOrigins, page }: AccessRules): MiddlewareHandler<ApiEnv> {
  const failures = new FailedKeys();
  const expected = apiKey === null ? null : digest(Buffer.from(apiKey, 'utf8'));
  return async (c, next) => {
    if (c.req.path === '/health' || PLATFORM_PATH.test(c.req.path)) return next();
    const { origin } = c.env.incoming.headers;
    if (origin !== undefined) {
      assertOrigin(c, origin, allowedOrigins);
      nameOrigin(c, origin);
      const isPreflight = c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
      if (isPreflight) return answerPreflight(c);
    }
    if (expected === null) assertLocal(c);
    const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
    const file = isRead ? page?.(c.req.path, c.req.header('if-none-match')) : null;
    if (file) return c.newResponse(file.body, file);
    if (expected !== null) assertKey(c, expected, failures);
    c.set('credential', expected === null ? LOOPBACK_CREDENTIAL : `key:${expected.toString('hex').slice(0, 16)}`);
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

function assertLocal(c: ApiContext): void {
  const address = addressOf(c);
  if (!isLoopbackAddress(address)) {
    throw new MoiraiError('forbidden_client', `no key is set, and ${address} is another machine`);
  }
  const { host = '' } = c.env.incoming.headers;
  if (!isLoopbackHost(host)) throw new MoiraiError('forbidden_host', `"${host}" is not a name of this machine`);
}

function assertKey(c: ApiContext, expected: Buffer, failures: FailedKeys): void {
  const address = addressOf(c);
  // Before the key is looked at: who guesses must not learn that a guess was right.
  const wait = failures.waitSeconds(address, Date.now());
  if (wait > 0) {
    throw new MoiraiError('too_many_failures', `too many wrong keys came from ${address}`, {
      details: { retryAfterSeconds: wait },
    });
  }
  const given = /^Bearer +(\S.*)$/i.exec(c.env.incoming.headers.authorization ?? '')?.[1]?.trim();
  if (given === undefined) throw new MoiraiError('unauthorized', 'the request has no key');
  // Headers are read byte by byte; a key may have letters that take more than one.
  if (timingSafeEqual(digest(Buffer.from(given, 'latin1')), expected)) return;
  failures.note(address, Date.now());
  throw new MoiraiError('unauthorized', 'the key is wrong');
}

/** Digests are compared: they have one length, and say nothing of where two keys differ. */
function digest(key: Buffer): Buffer {
  return createHash('sha256').update(key).digest();
}

function addressOf(c: ApiContext): string {
  return c.env.incoming.socket.remoteAddress ?? 'an unknown address';
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
