import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_RETRY_MS = 10;
const LONGEST_RETRY_MS = 320;
const LOOK_MS = 10;

/** A request that Meta keeps until it is answered with 200. */
interface Post {
  readonly body: string;
  readonly kind: 'message' | 'status';
}

interface WebhookSecrets {
  readonly appSecret: string;
  readonly verifyToken: string;
}

/**
 * How Meta brings what happened: it asks once whether the address is right, signs every request, and brings each again by
 * itself, with growing pauses, until it is taken.
 */
export class WhatsAppWebhooks {
  readonly #secrets: WebhookSecrets;
  readonly #pending = new Set<Post>();
  /** The first try of what belongs to one chat comes after that of what was said before. */
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #closed = new AbortController();
  #cut = new AbortController();
  #url: string | null = null;
  #verified: string | null = null;

  constructor(secrets: WebhookSecrets) {
    this.#secrets = secrets;
  }

  get url(): string | null {
    return this.#url;
  }

  /** How many requests with messages are not taken yet. */
  get untakenMessages(): number {
    return [...this.#pending].filter(({ kind }) => kind === 'message').length;
  }

  bringTo(url: string | null): void {
    this.#url = url;
  }

  /** Keeps a request and brings it; resolves when it was tried for the first time. */
  bring(payload: unknown, kind: Post['kind'], lane: string): Promise<void> {
    const post = { body: JSON.stringify(payload), kind };
    this.#pending.add(post);
    const tried = (this.#lanes.get(lane) ?? Promise.resolve()).then(async () => {
      if (await this.#try(post)) this.#pending.delete(post);
      else void this.#bringAgain(post);
    });
    const quiet = tried.catch(() => undefined);
    this.#lanes.set(lane, quiet);
    void quiet.then(() => this.#lanes.get(lane) === quiet && this.#lanes.delete(lane));
    return tried;
  }

  /** Tries once, whatever comes of it. */
  async once(payload: unknown): Promise<void> {
    await this.#try({ body: JSON.stringify(payload), kind: 'message' });
  }

  /** One request with a signature of anybody; returns the status it is answered with. */
  async post(payload: unknown, signature: string | null): Promise<number> {
    const headers = { 'content-type': 'application/json', ...(signature === null ? {} : { [HEADER]: signature }) };
    const response = await fetch(this.#url ?? '', { method: 'POST', headers, body: JSON.stringify(payload) });
    await response.arrayBuffer();
    return response.status;
  }

  sign(body: string, secret = this.#secrets.appSecret): string {
    return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  }

  /** Requests that are under way break off. */
  cut(): void {
    this.#cut.abort();
    this.#cut = new AbortController();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.cut();
    await Promise.all(this.#lanes.values());
  }

  async #bringAgain(post: Post): Promise<void> {
    for (let wait = FIRST_RETRY_MS; !this.#closed.signal.aborted; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      await sleep(wait);
      if (await this.#try(post)) break;
    }
    this.#pending.delete(post);
  }

  async #try({ body }: Post): Promise<boolean> {
    const url = await this.#door();
    if (url === null) return false;
    try {
      const headers = { 'content-type': 'application/json', [HEADER]: this.sign(body) };
      const response = await fetch(url, { method: 'POST', headers, body, signal: this.#cut.signal });
      await response.arrayBuffer();
      return response.status === 200;
    } catch {
      return false;
    }
  }

  /** Waits until there is an address that has shown that it is the right one. */
  async #door(): Promise<string | null> {
    while (!this.#closed.signal.aborted) {
      const url = this.#url;
      if (url !== null && (url === this.#verified || (await this.#verify(url)))) return url;
      await sleep(LOOK_MS);
    }
    return null;
  }

  async #verify(url: string): Promise<boolean> {
    const challenge = String(Math.floor(Math.random() * 1e9));
    const query = new URLSearchParams({
      'hub.mode': 'subscribe',
      'hub.challenge': challenge,
      'hub.verify_token': this.#secrets.verifyToken,
    });
    try {
      const response = await fetch(`${url}?${query}`, { signal: this.#cut.signal });
      const isRight = response.status === 200 && (await response.text()) === challenge;
      if (isRight) this.#verified = url;
      return isRight;
    } catch {
      return false;
    }
  }
}

const HEADER = 'x-hub-signature-256';
