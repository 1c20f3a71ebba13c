import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Makes the next call that writes a comment go wrong. */
export type GitHubFault =
  | { readonly status: number; readonly message: string; readonly headers?: Record<string, string> }
  /** It is done, and the answer is lost. */
  | 'lost';

export interface Comment {
  readonly id: number;
  readonly issue: number;
  readonly body: string;
  readonly user: Account;
}

interface Account {
  readonly id: number;
  readonly login: string;
  readonly type: 'User' | 'Bot';
}

interface Fields {
  readonly body?: string;
  readonly content?: string;
}

interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const NOT_FOUND: Reply = { status: 404, body: { message: 'Not Found' } };

interface Delivery {
  readonly event: string;
  readonly body: string;
}

const OWNER = 'ada';
const REPO = 'loom';
const CREATED = '2026-11-01T10:00:00Z';

/**
 * GitHub on loopback: comments of issues and their reactions, and webhooks with signatures. A delivery that is not
 * acknowledged stays until somebody presses "Redeliver", which is done at once here.
 */
export class GitHubFake {
  readonly self: Account = { id: 9000, login: 'moirai-bot', type: 'User' };
  readonly token = 'ghp_secret-of-the-bot';
  readonly secret = "it's a secret to everybody";
  readonly comments = new Map<number, Comment>();
  /** By comment: what is put there, by whom. */
  readonly reactions = new Map<number, { readonly id: number; readonly content: string }[]>();
  readonly pending: Delivery[] = [];
  readonly faults: GitHubFault[] = [];
  onTaken: (() => void) | null = null;
  readonly #server: Server;
  #last = 100;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<GitHubFake> {
    const fake = new GitHubFake();
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Somebody writes a comment; returns its number. */
  comment(issue: number, body: string, user: Account): number {
    const id = ++this.#last;
    this.comments.set(id, { id, issue, body, user });
    this.push({ action: 'created', ...this.#eventOf(id) });
    return id;
  }

  push(payload: Record<string, unknown>, event = 'issue_comment'): void {
    this.pending.push({ event, body: JSON.stringify(payload) });
  }

  /** The headers of a delivery. */
  sign(body: string, event: string, secret = this.secret): Record<string, string> {
    const sum = createHmac('sha256', secret).update(body).digest('hex');
    return { 'content-type': 'application/json', 'x-github-event': event, 'x-hub-signature-256': `sha256=${sum}` };
  }

  /** Brings what is kept, one after the other, as long as it is taken. */
  async deliver(to: string): Promise<void> {
    for (let next = this.pending[0]; next !== undefined; next = this.pending[0]) {
      const { body, event } = next;
      const response = await fetch(to, { method: 'POST', headers: this.sign(body, event), body });
      await response.arrayBuffer();
      if (!response.ok) return;
      this.pending.shift();
    }
  }

  cut(): void {
    this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #eventOf(id: number): Record<string, unknown> {
    const { issue, user } = this.comments.get(id)!;
    const owner = { id: 42, login: OWNER, type: 'User' };
    return {
      comment: this.#shown(id),
      issue: { number: issue, title: 'A bug', user },
      repository: { id: 7, name: REPO, full_name: `${OWNER}/${REPO}`, owner },
      sender: user,
    };
  }

  #shown(id: number): Record<string, unknown> {
    const { body, user } = this.comments.get(id)!;
    return { id, body, user, created_at: CREATED, updated_at: CREATED, html_url: `${this.url}/${id}` };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const isKnown = request.headers.authorization === `token ${this.token}`;
    const reply = isKnown ? this.#reply(request, body) : { status: 401, body: { message: 'Bad credentials' } };
    if (reply === 'lost') return void response.destroy();
    response.writeHead(reply.status, { 'content-type': 'application/json; charset=utf-8', ...reply.headers });
    response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
  }

  #reply({ method, url = '/' }: IncomingMessage, body: string): Reply | 'lost' {
    const fields = (body === '' ? {} : JSON.parse(body)) as Fields;
    const path = new URL(url, 'http://fake').pathname.replace(`/repos/${OWNER}/${REPO}/issues`, '');
    const call = `${method} ${path.replaceAll(/\d+/g, 'N')}`;
    const [first = 0, second = 0] = [...path.matchAll(/\d+/g)].map(([digits]) => Number(digits));
    if (call === 'GET /user') return { status: 200, body: this.self };
    if (call === 'POST /N/comments') return this.#write(first, fields.body ?? '');
    return this.comments.has(first) ? this.#change(call, first, second, fields) : NOT_FOUND;
  }

  #write(issue: number, body: string): Reply | 'lost' {
    const fault = this.faults.shift();
    if (fault !== undefined && fault !== 'lost') return { ...fault, body: { message: fault.message } };
    if (body === '') return { status: 422, body: { message: 'Validation Failed' } };
    const id = ++this.#last;
    this.comments.set(id, { id, issue, body, user: this.self });
    this.onTaken?.();
    return fault ?? { status: 201, body: this.#shown(id) };
  }

  #change(call: string, id: number, reaction: number, { body = '', content = '' }: Fields): Reply {
    const there = this.reactions.get(id) ?? [];
    switch (call) {
      case 'PATCH /comments/N':
        this.comments.set(id, { ...this.comments.get(id)!, body });
        return { status: 200, body: this.#shown(id) };
      case 'DELETE /comments/N':
        this.comments.delete(id);
        return { status: 204 };
      case 'POST /comments/N/reactions':
        this.reactions.set(id, [...there, { id: ++this.#last, content }]);
        return { status: 201, body: { id: this.#last, content } };
      case 'GET /comments/N/reactions':
        return { status: 200, body: there.map((each) => ({ ...each, user: this.self })) };
      case 'DELETE /comments/N/reactions/N':
        this.reactions.set(
          id,
          there.filter((each) => each.id !== reaction),
        );
        return { status: 204 };
      default:
        return NOT_FOUND;
    }
  }
}
