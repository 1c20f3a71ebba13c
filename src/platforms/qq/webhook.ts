import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { type Fields, fieldsOf, textOf } from '../fields.ts';
import type { WebhookAnswer, WebhookRequest } from '../platform.ts';
import { isFresh } from '../signatures.ts';
import { OP } from './gateway-socket.ts';

const SEED_BYTES = 32;
/** What stands in front of the seed of an Ed25519 key where keys are written down. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** What QQ signs with, and we when we prove that we know the AppSecret: both come from that. */
export class SigningKeys {
  readonly #private: KeyObject;
  readonly #public: KeyObject;

  constructor(clientSecret: string) {
    const secret = Buffer.from(clientSecret === '' ? ' ' : clientSecret);
    const times = Math.ceil(SEED_BYTES / secret.length);
    const seed = Buffer.concat(Array.from({ length: times }, () => secret)).subarray(0, SEED_BYTES);
    this.#private = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
    this.#public = createPublicKey(this.#private);
  }

  /** In hexadecimal digits. */
  sign(message: string): string {
    return sign(null, Buffer.from(message), this.#private).toString('hex');
  }

  /** Whether QQ has sent the body, and not long ago. */
  isFromQq({ headers, body }: WebhookRequest, now: number): boolean {
    const timestamp = headers['x-signature-timestamp'];
    const signature = headers['x-signature-ed25519'] ?? '';
    if (!isFresh(timestamp, now) || !/^[\da-f]{128}$/i.test(signature)) return false;
    const message = Buffer.concat([Buffer.from(timestamp ?? ''), body]);
    return verify(null, message, this.#public, Buffer.from(signature, 'hex'));
  }
}

/** What the body says; null for what is no object. */
export function payloadOf({ body }: WebhookRequest): Fields | null {
  try {
    return fieldsOf(JSON.parse(Buffer.from(body).toString('utf8')));
  } catch {
    return null;
  }
}

/**
 * The answer by which QQ sees, when the address is entered, that we know the AppSecret; null for what asks for something
 * else. It signs nothing that could be taken for an event: those have other signs than letters and digits.
 */
export function validation(payload: Fields, keys: SigningKeys): WebhookAnswer | null {
  if (payload.op !== OP.validation) return null;
  const data = fieldsOf(payload.d);
  const [token, timestamp] = [textOf(data?.plain_token, 256), textOf(data?.event_ts, 32)];
  if (token === null || timestamp === null || !/^\w+$/.test(token) || !/^\d+$/.test(timestamp)) return { status: 400 };
  return answered({ plain_token: token, signature: keys.sign(timestamp + token) });
}

/** The inbox has it. */
export function acknowledgement(): WebhookAnswer {
  return answered({ op: OP.httpAck });
}

function answered(body: Fields): WebhookAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}
