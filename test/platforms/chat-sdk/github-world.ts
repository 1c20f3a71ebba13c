import type { Place } from '../../../src/platforms/platform.ts';
import { GitHubFake } from '../../fakes/github.ts';
import type { Forgery, Shown, UserMessage, Where, World } from '../contract/scene.ts';
import { PACKAGES } from './world.ts';

const DELIVER_MS = 10;
const ISSUES = { dm: 100, group: 7, thread: 9 } as const;

/** Issues of a repository and the people who write there, through the adapter for GitHub. */
export class GitHubWorld implements World {
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  readonly fake: GitHubFake;
  readonly #pump: NodeJS.Timeout;
  #door: string | null = null;
  #delivering = false;
  #last: Record<string, unknown> = {};

  private constructor(fake: GitHubFake) {
    this.fake = fake;
    const { token, secret, url, self } = fake;
    this.settings = {
      adapter: '@chat-adapter/github',
      options: { token, webhookSecret: secret, apiUrl: url, userName: self.login },
      packages_from: PACKAGES,
    };
    this.secrets = [token, secret];
    this.#pump = setInterval(() => void this.#deliver(), DELIVER_MS);
  }

  static async open(): Promise<GitHubWorld> {
    return new GitHubWorld(await GitHubFake.start());
  }

  /** There are no direct chats: who wants the agent for themselves opens an issue. */
  place(where: Where, person = 0): Place {
    return { type: 'thread', chat: 'ada/loom', thread: `issue:${ISSUES[where] + person}` };
  }

  async say({ text, where = 'dm', person = 0 }: UserMessage): Promise<string> {
    const issue = ISSUES[where] + person;
    const user = { id: 1000 + person, login: `user${person}`, type: 'User' } as const;
    // Where others listen one has to be named.
    const id = this.fake.comment(issue, where === 'group' ? text : `@${this.fake.self.login} ${text}`, user);
    this.#last = JSON.parse(this.fake.pending.at(-1)!.body) as Record<string, unknown>;
    return String(id);
  }

  push(payload: Record<string, unknown>): void {
    this.fake.push(payload);
  }

  shown(): readonly Shown[] {
    const own = [...this.fake.comments.values()].filter(({ user }) => user.id === this.fake.self.id);
    return own.map(({ id, issue, body }) => ({
      ...{ messageId: String(id), chat: 'ada/loom', text: body, thread: `issue:${issue}`, repliesTo: null },
      ...{ files: [], buttons: [] },
    }));
  }

  unacknowledged(): number {
    return this.fake.pending.length;
  }

  async echo(text: string): Promise<void> {
    this.fake.comment(ISSUES.dm, text, this.fake.self);
  }

  async bringAgain(): Promise<void> {
    this.fake.push(this.#last);
  }

  reactions(messageId: string): readonly string[] {
    return (this.fake.reactions.get(Number(messageId)) ?? []).map(({ content }) => content);
  }

  limitRate(ms: number): void {
    const headers = { 'retry-after': String(ms / 1000) };
    this.fake.faults.push({ status: 403, message: 'You have exceeded a secondary rate limit', headers });
  }

  stumble(): void {
    this.fake.faults.push({ status: 502, message: 'Bad Gateway' });
  }

  loseAnswer(): void {
    this.fake.faults.push('lost');
  }

  cut(): void {
    this.fake.cut();
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  bringTo(url: string | null): void {
    this.#door = url;
  }

  async forge(how: Forgery): Promise<number> {
    const body = JSON.stringify({ action: 'created', comment: { id: 1, body: '@moirai-bot forged' } });
    const { 'x-hub-signature-256': _, ...unsigned } = this.fake.sign(body, 'issue_comment', 'another secret');
    const headers = how === 'unsigned' ? unsigned : this.fake.sign(body, 'issue_comment', 'another secret');
    return (await fetch(this.#door ?? '', { method: 'POST', headers, body })).status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#pump);
    await this.fake.close();
  }

  async #deliver(): Promise<void> {
    if (this.#delivering || this.#door === null) return;
    this.#delivering = true;
    await this.fake.deliver(this.#door).catch(() => undefined);
    this.#delivering = false;
  }
}
