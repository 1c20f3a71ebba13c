import { createHash, timingSafeEqual } from 'node:crypto';
import { type BotApi, withDeadline } from './bot-api.ts';
import type { Connection } from './connection.ts';
import { type Parsed, UPDATE_KINDS } from './parse.ts';

export interface Webhook {
  /** Where Telegram reaches us: https, and one of the ports 443, 80, 88 and 8443. */
  readonly url: string;
  /** What Telegram sends along to show that it is Telegram: 1 to 256 letters, digits, `_` and `-`. */
  readonly secret: string;
}

/** A request to the webhook, as whoever owns the port got it. Header names in lower case. */
export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array | string;
}

const SECRET_HEADER = 'x-telegram-bot-api-secret-token';
const CALL_MS = 30_000;

interface Registration {
  readonly api: BotApi;
  readonly webhook: Webhook;
  readonly connection: Connection;
}

/** Tells Telegram where we are; tries until it knows. */
export async function registerWebhook({ api, webhook, connection }: Registration, signal: AbortSignal): Promise<void> {
  const order = { url: webhook.url, secret_token: webhook.secret, allowed_updates: UPDATE_KINDS };
  while (!signal.aborted) {
    try {
      await withDeadline(signal, CALL_MS, (deadline) => api.setWebhook(order, deadline));
      return connection.succeeded();
    } catch (thrown) {
      if (signal.aborted) return;
      const { phase } = await connection.failed(thrown, signal);
      if (phase === 'failed') return;
    }
  }
}

/** True when the request carries the secret. How long it takes says nothing about the secret. */
export function isFromTelegram({ headers }: WebhookRequest, secret: string): boolean {
  const given = headers[SECRET_HEADER];
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(typeof given === 'string' ? given : ''), digest(secret));
}

/** What the body says; null for what is no update, which nobody should send us again. */
export function parseBody({ body }: WebhookRequest, parse: (update: unknown) => Parsed | null): Parsed | null {
  try {
    return parse(JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8')));
  } catch {
    return null;
  }
}
