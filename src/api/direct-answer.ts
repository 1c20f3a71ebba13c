import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { ApiContext } from './api.ts';

/**
 * Answers with JSON, past the framework: to make a `Response` and read it again costs more than the answer. Headers are
 * those of the connection's own answer; what was said with `c.header` is not among them.
 */
export function answerJson(c: ApiContext, body: object, status = 200): Response {
  const { outgoing } = c.env;
  const text = JSON.stringify(body);
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  outgoing.end(text);
  return RESPONSE_ALREADY_SENT;
}

/**
 * Answers with bytes that many requests share, as they are: a `Response` would copy them for each. The context's headers
 * go along.
 */
export function sendShared(c: ApiContext, parts: readonly Uint8Array[]): Response {
  const { outgoing } = c.env;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const headers = Object.fromEntries(c.body(null, 200).headers);
  outgoing.writeHead(200, { ...headers, 'content-length': length });
  outgoing.cork();
  for (const part of parts) outgoing.write(part);
  outgoing.end();
  outgoing.uncork();
  return RESPONSE_ALREADY_SENT;
}
