import type { WebhookRequest } from '../platform.ts';
import { hmacSha256, isFresh, isSame } from '../signatures.ts';
import type { RouteSettings } from './descriptor.ts';

type Verify = (request: WebhookRequest, route: RouteSettings, now: number) => boolean;

/** Whether a request is the sender's, by the bytes that came. How long it takes says nothing about the secret. */
export function isFromSender(request: WebhookRequest, route: RouteSettings, now: number): boolean {
  return SIGNATURES[route.signature](request, route, now);
}

const SIGNATURES: Readonly<Record<RouteSettings['signature'], Verify>> = {
  standard: ({ headers, body }, { secret }, now) => {
    const { 'webhook-id': id = '', 'webhook-timestamp': at = '', 'webhook-signature': given = '' } = headers;
    if (id === '' || !isFresh(at, now)) return false;
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    const right = `v1,${hmacSha256(key, [`${id}.${at}.`, body], 'base64')}`;
    // One for each secret that the sender has at the moment.
    return given.split(' ').some((one) => isSame(one, right));
  },
  github: ({ headers, body }, { secret }) => {
    return isSame(headers['x-hub-signature-256'] ?? '', `sha256=${hmacSha256(secret, [body], 'hex')}`);
  },
  stripe: ({ headers, body }, { secret }, now) => {
    const parts = (headers['stripe-signature'] ?? '').split(',').map((part) => part.trim().split('='));
    const [, at] = parts.find(([name]) => name === 't') ?? [];
    if (!isFresh(at, now)) return false;
    const right = hmacSha256(secret, [`${at}.`, body], 'hex');
    return parts.some(([name, given = '']) => name === 'v1' && isSame(given, right));
  },
  slack: ({ headers, body }, { secret }, now) => {
    const at = headers['x-slack-request-timestamp'];
    if (!isFresh(at, now)) return false;
    const right = `v0=${hmacSha256(secret, [`v0:${at}:`, body], 'hex')}`;
    return isSame(headers['x-slack-signature'] ?? '', right);
  },
  header: ({ headers }, { secret, header }) => isSame(headers[header.toLowerCase()] ?? '', secret),
};
