import { createHash, timingSafeEqual } from 'node:crypto';
import type { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import type { WebhookRequest } from '../platform.ts';
import type { BotApi, CallSignal } from './bot-api.ts';
import type { TelegramTrouble } from './failures.ts';
import { type Parsed, UPDATE_KINDS } from './parse.ts';

export interface Webhook {
  /** Where Telegram reaches us: https, and one of the ports 443, 80, 88 and 8443. */
  readonly url: string;
  /** What Telegram sends along to show that it is Telegram: 1 to 256 letters, digits, `_` and `-`. */
  readonly secret: string;
}

const SECRET_HEADER = 'x-telegram-bot-api-secret-token';
const CALL_MS = 30_000;

/** Tells Telegram where we are; tries until it knows. */
export async function registerWebhook(
  api: BotApi,
  { url, secret }: Webhook,
  connection: Connection<TelegramTrouble>,
  signal: AbortSignal,
): Promise<void> {
  const order = { url, secret_token: secret, allowed_updates: UPDATE_KINDS };
  const register = () => withDeadline(signal, CALL_MS, (deadline: CallSignal) => api.setWebhook(order, deadline));
  if ((await connection.keepTrying(register, signal)) !== null) connection.succeeded();
}

/** True when the request carries the secret. How long it takes says nothing about the secret. */
export function isFromTelegram({ headers }: WebhookRequest, secret: string): boolean {
  const given = headers[SECRET_HEADER];
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given ?? ''), digest(secret));
}

/** What the body says; null for what is no update: Telegram should not send it again. */
export function parseBody({ body }: WebhookRequest, parse: (update: unknown) => Parsed | null): Parsed | null {
  try {
    return parse(JSON.parse(Buffer.from(body).toString('utf8')));
  } catch {
    return null;
  }
}
