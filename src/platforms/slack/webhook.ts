import type { WebhookRequest } from '../platform.ts';
import { hmacSha256, isFresh, isSame, SIGNATURE_AGE_MS } from '../signatures.ts';

/** More requests than Slack brings in the time in which a signature is good. */
const MOST_REMEMBERED = 20_000;

/** Tells Slack's own requests from those of others. */
export class RequestGuard {
  readonly #secret: string;
  readonly #clock: () => number;
  /** Signatures of requests that were admitted, with the time at which they are too old by themselves. */
  readonly #taken = new Map<string, number>();

  constructor(secret: string, clock: () => number) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /**
   * False for what Slack has not signed, for what is too old, and for what was admitted before: the same request, to the
   * byte, is somebody else's.
   */
  admits({ headers, body }: WebhookRequest): boolean {
    const time = headers['x-slack-request-timestamp'];
    const signature = headers['x-slack-signature'];
    if (signature === undefined || time === undefined || !isFresh(time, this.#clock())) return false;
    const own = `v0=${hmacSha256(this.#secret, [`v0:${time}:`, body], 'hex')}`;
    if (!isSame(signature, own) || this.#taken.has(signature)) return false;
    this.#remember(signature);
    return true;
  }

  /** It could not be taken, and Slack may bring it again within the same second. */
  release({ headers }: WebhookRequest): void {
    this.#taken.delete(headers['x-slack-signature'] ?? '');
  }

  #remember(signature: string): void {
    const now = this.#clock();
    if (this.#taken.size >= MOST_REMEMBERED) {
      for (const [old, until] of this.#taken) if (until < now) this.#taken.delete(old);
      for (const [oldest] of this.#taken) if (this.#taken.size >= MOST_REMEMBERED) this.#taken.delete(oldest);
    }
    this.#taken.set(signature, now + 2 * SIGNATURE_AGE_MS);
  }
}

/** What a request says, as an envelope of a socket would: a body of JSON, or a form; null for neither. */
export function payloadOf({ headers, body }: WebhookRequest): unknown {
  const text = Buffer.from(body).toString('utf8');
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  if (!isForm) return parsed(text);
  const fields = Object.fromEntries(new URLSearchParams(text));
  return fields.payload === undefined ? fields : parsed(fields.payload);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
