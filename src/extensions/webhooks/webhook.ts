import { createHmac } from 'node:crypto';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { NewSubscriber } from '../../events/dispatcher.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';

/** An address that events are sent to. */
export interface Webhook {
  readonly name: string;
  readonly url: string;
  /** `whsec_` and base64. */
  readonly secret: string;
  readonly events: readonly string[];
}

export interface WebhookSettings {
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly log: Logger;
}

const CONCURRENCY = 8;
const MARGIN_MS = 5000;
const MOST_ANSWER_BYTES = 64 * 1024;

/**
 * Sends events to a webhook's receiver, as a subscriber of the log: in order per conversation, and for as long as it
 * takes when the receiver is down.
 */
export function webhookSubscriber(webhook: Webhook, settings: WebhookSettings): NewSubscriber {
  const { timeoutMs, maxAttempts } = settings;
  const report = reporter(settings.log.child({ webhook: webhook.name }));
  return {
    name: `webhook:${webhook.name}`,
    events: webhook.events,
    from: 'now',
    // Our own deadline comes first: a receiver that hangs is down, which is no failure of an event.
    timeoutMs: timeoutMs + MARGIN_MS,
    maxAttempts,
    concurrency: CONCURRENCY,
    handle: (event, signal) => report(event, sendEvent(webhook, event, timeoutMs, signal)),
  };
}

/** Says what was refused, and when a receiver goes down or comes back; not how often it was tried. */
function reporter(log: Logger): (event: MoiraiEvent, sent: Promise<unknown>) => Promise<void> {
  let down = false;
  return async (event, sent) => {
    try {
      await sent;
      if (down) log.info('webhook reached again');
      down = false;
    } catch (thrown) {
      const { message: error } = MoiraiError.wrap(thrown);
      const unavailable = hasCode(thrown, 'subscriber_unavailable');
      if (!unavailable) log.warn('webhook refused an event', { event: event.id, error });
      else if (!down) log.warn('webhook is down; its events wait', { error });
      down = unavailable;
      throw thrown;
    }
  };
}

/**
 * Posts one event, signed. Resolves with a 2xx; throws `subscriber_unavailable` when the receiver is down, and
 * `subscriber_failed` for every other answer. No error carries the address, which may have a password in it, or the
 * answer's body.
 */
export async function sendEvent(
  webhook: Webhook,
  event: MoiraiEvent,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const { url, headers } = addressOf(webhook.url);
  const body = JSON.stringify(event);
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, ...signatureOf(webhook.secret, event.id, Math.floor(Date.now() / 1000), body) },
    body,
    redirect: 'manual',
    signal: AbortSignal.any([deadline, signal]),
  }).catch((cause: unknown) => {
    const why = deadline.aborted ? `no answer in ${timeoutMs} ms` : troubleOf(cause);
    throw new MoiraiError('subscriber_unavailable', `${webhook.name} cannot be reached: ${why}`);
  });
  void readOff(response);
  const { status } = response;
  if (response.ok) return status;
  const down = status === 408 || status === 429 || status >= 500;
  const code = down ? 'subscriber_unavailable' : 'subscriber_failed';
  throw new MoiraiError(code, `${webhook.name} answered ${status} to ${event.id}`, { details: { status } });
}

/** The headers of Standard Webhooks: the id and the second are signed with the body. */
export function signatureOf(secret: string, id: string, second: number, body: string): Record<string, string> {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${second}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(second), 'webhook-signature': `v1,${signature}` };
}

/** `fetch` takes no name and password in an address. */
function addressOf(text: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(text);
  const headers: Record<string, string> = { 'content-type': 'application/json', 'user-agent': 'moirai' };
  if (url.username !== '' || url.password !== '') {
    const words = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(words).toString('base64')}`;
    [url.username, url.password] = ['', ''];
  }
  return { url, headers };
}

/** A short answer is read, so that the connection can be used again; a long one is cut off. */
async function readOff({ body }: Response): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of body ?? []) {
      bytes += (chunk as Uint8Array).length;
      if (bytes > MOST_ANSWER_BYTES) break;
    }
  } catch {
    // The status has been read, and the rest of the answer is not needed.
  }
}

function troubleOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : null;
  const code = (cause as NodeJS.ErrnoException | null)?.code;
  return code ?? (thrown instanceof Error ? thrown.name : 'unknown');
}
