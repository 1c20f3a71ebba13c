import { createHash } from 'node:crypto';
import { fieldsOf, textOf } from '../fields.ts';
import type { WebhookRequest } from '../platform.ts';
import type { RouteSettings } from './descriptor.ts';
import type { Prompted } from './render.ts';

/** What a sender brought, after it has proven itself. */
export type Delivery =
  /** Something to be worked on. */
  | { readonly kind: 'submission'; readonly id: string; readonly body: Prompted }
  /** The sender only asks whether somebody is there. */
  | { readonly kind: 'greeting'; readonly answer: Readonly<Record<string, unknown>> };

const LONGEST_CHALLENGE = 1000;

export function parseDelivery(request: WebhookRequest, route: RouteSettings): Delivery {
  const { headers } = request;
  const text = textOfBody(request, route);
  const json = parsed(text);
  if (route.signature === 'github' && headers['x-github-event'] === 'ping') return { kind: 'greeting', answer: {} };
  const challenge = route.signature === 'slack' ? challengeIn(json) : null;
  if (challenge !== null) return { kind: 'greeting', answer: { challenge } };
  return { kind: 'submission', id: idOf(request, route, json), body: { text, json } };
}

/** GitHub brings its JSON in a form unless it is told otherwise, and Slack brings some of it so. */
function textOfBody({ headers, body }: WebhookRequest, { signature }: RouteSettings): string {
  const text = Buffer.from(body).toString('utf8');
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  if (!isForm || (signature !== 'github' && signature !== 'slack')) return text;
  return new URLSearchParams(text).get('payload') ?? text;
}

/** What Slack wants to see again before it brings events to an address. */
function challengeIn(json: unknown): string | null {
  const fields = fieldsOf(json);
  return fields?.type === 'url_verification' ? textOf(fields.challenge, LONGEST_CHALLENGE) : null;
}

/** How the sender calls it, the same when it is brought again; without a name of the sender's, what it holds. */
function idOf({ headers, body }: WebhookRequest, { signature, idHeader }: RouteSettings, json: unknown): string {
  const own = idHeader === null ? undefined : headers[idHeader.toLowerCase()];
  const named = own || senderId(signature, headers, json);
  return named || createHash('sha256').update(body).digest('hex');
}

function senderId(
  signature: RouteSettings['signature'],
  headers: WebhookRequest['headers'],
  json: unknown,
): string | null | undefined {
  if (signature === 'standard') return headers['webhook-id'];
  if (signature === 'github') return headers['x-github-delivery'];
  return signature === 'stripe' ? textOf(fieldsOf(json)?.id) : null;
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
