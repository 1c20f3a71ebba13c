import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** How a sender proves itself. */
export const SCHEMES = ['standard', 'github', 'stripe', 'slack', 'header'] as const;

export type Scheme = (typeof SCHEMES)[number];

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const AGAIN_MS = 50;

/** A program that brings webhooks as the real ones do: it signs each attempt anew, and brings what is not acknowledged again. */
export class WebhookSender {
  readonly scheme: Scheme;
  readonly secret: string;
  /** Where it brings them; null while nobody is there. */
  url: string | null = null;
  /** What it brought last, byte for byte. */
  last: Sent | null = null;

  constructor(scheme: Scheme, secret: string = SECRETS[scheme]) {
    this.scheme = scheme;
    this.secret = secret;
  }

  /** A delivery is what it says, under the name by which this sender knows it. */
  delivery(id: string, says: Readonly<Record<string, unknown>>): string {
    return JSON.stringify(this.scheme === 'stripe' ? { id, object: 'event', ...says } : says);
  }

  /** The headers of an attempt. */
  sign(body: string, id: string, at = new Date()): Record<string, string> {
    return { 'content-type': 'application/json', ...SIGNERS[this.scheme](this.secret, body, id, at) };
  }

  /** One attempt. */
  async post(body: string, headers: Readonly<Record<string, string>>): Promise<Answered> {
    if (this.url === null) throw new TypeError('the sender reaches nobody');
    this.last = { headers, body };
    const response = await fetch(this.url, { method: 'POST', headers, body });
    return { status: response.status, text: await response.text(), headers: response.headers };
  }

  /** Brings it until it is acknowledged. */
  async bring(body: string, id: string): Promise<Answered> {
    for (;;) {
      try {
        const answered = await this.post(body, this.sign(body, id));
        if (answered.status < 300) return answered;
      } catch {
        // Nobody is there, or the connection broke.
      }
      await sleep(AGAIN_MS);
    }
  }
}

const SECRETS: Readonly<Record<Scheme, string>> = {
  standard: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  github: "It's a Secret to Everybody",
  stripe: 'whsec_5f4dcc3b5aa765d61d8327deb882cf99',
  slack: '8f742231b10e8888abcd99yyyzzz85a5',
  header: 'open, sesame',
};

type Signer = (secret: string, body: string, id: string, at: Date) => Record<string, string>;

const hex = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('hex');
const secondsOf = (at: Date): string => String(Math.floor(at.getTime() / 1000));

const SIGNERS: Readonly<Record<Scheme, Signer>> = {
  standard: (secret, body, id, at) => ({
    'webhook-id': id,
    'webhook-timestamp': secondsOf(at),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  }),
  github: (secret, body, id) => ({
    'x-github-event': 'issues',
    'x-github-delivery': id,
    'x-hub-signature-256': `sha256=${hex(secret, body)}`,
  }),
  stripe: (secret, body, _, at) => {
    const time = secondsOf(at);
    return { 'stripe-signature': `t=${time},v1=${hex(secret, `${time}.${body}`)},v0=${'0'.repeat(64)}` };
  },
  slack: (secret, body, _, at) => {
    const time = secondsOf(at);
    return {
      'x-slack-request-timestamp': time,
      'x-slack-signature': `v0=${hex(secret, `v0:${time}:${body}`)}`,
    };
  },
  header: (secret, _, id) => ({ 'x-webhook-secret': secret, 'x-delivery': id }),
};
