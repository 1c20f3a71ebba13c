import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './api.ts';

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
