import type { PlatformRuntime, WebhookAnswer, WebhookRequest } from '../platform.ts';
import { hmacSha256, isSame } from '../signatures.ts';

const SIGNATURE = 'x-hub-signature-256';
/** For so long Meta brings again what was not taken, and an hour for clocks that differ. */
const OLDEST_MS = 7 * 24 * 3_600_000 + 3_600_000;

/**
 * Answers the question with which Meta makes sure that the address is ours. The challenge comes from outside and goes back
 * as text, so only what looks like one does.
 */
export function answerHandshake({ query }: WebhookRequest, verifyToken: string): WebhookAnswer {
  const challenge = query.get('hub.challenge') ?? '';
  const isAsked = query.get('hub.mode') === 'subscribe' && /^[\w.-]{1,256}$/.test(challenge);
  if (!isAsked || !isSame(query.get('hub.verify_token') ?? '', verifyToken)) return { status: 403 };
  return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: challenge };
}

/** True when the body is signed with the secret of the app. How long it takes says nothing about the secret. */
export function isFromMeta({ headers, body }: WebhookRequest, appSecret: string): boolean {
  return isSame(headers[SIGNATURE] ?? '', `sha256=${hmacSha256(appSecret, [body], 'hex')}`);
}

/**
 * True when nothing in a request is of the time in which Meta could still be bringing it. The signature carries no time, but
 * it covers the times of what was said: a request is at least as young as the newest of that.
 */
export function isStale(newestAt: number | null, { now }: Pick<PlatformRuntime, 'now'>): boolean {
  return newestAt !== null && now() - newestAt > OLDEST_MS;
}

/** The body as JSON; null for what is none: Meta should not bring it again. */
export function readBody({ body }: WebhookRequest): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return null;
  }
}
