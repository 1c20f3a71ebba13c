import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/engine.ts';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import { FileHooks } from '../../src/extensions/hooks/file-hooks.ts';
import { ExtensionHost } from '../../src/extensions/host/extension-host.ts';
import type { ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { SubscriberStatus } from '../../src/store/transactions/subscribers.ts';
import { patience } from '../support/patience.ts';
import { bootTestEngine, chatConversation, openTestStore, type TestStore } from '../support/stores.ts';

/** A home with hooks in it, a real store, and a dispatcher that serves them. */
export class Scene {
  readonly home = mkdtempSync(join(tmpdir(), 'moirai-hooks-'));
  readonly opened: TestStore;
  readonly engine: Engine;
  readonly logged: string[] = [];
  readonly log = createLogger({
    ...{ level: 'debug', format: 'json' },
    stream: { write: (line) => this.logged.push(line) },
  });
  readonly host = new ExtensionHost(this.log);
  hooks: FileHooks | null = null;
  #dispatcher: Dispatcher;

  private constructor(opened: TestStore, engine: Engine) {
    this.opened = opened;
    this.engine = engine;
    this.#dispatcher = this.#makeDispatcher();
  }

  static async open(rules?: ResetRules): Promise<Scene> {
    const opened = await openTestStore('sqlite', rules);
    return new Scene(opened, await bootTestEngine(opened.store));
  }

  get dispatcher(): Dispatcher {
    return this.#dispatcher;
  }

  /** Puts a hook's files in its folder. */
  hook(name: string, files: Record<string, string>): void {
    const folder = join(this.home, 'hooks', name);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      writeFileSync(join(folder, file), text);
      if (file === 'handler') chmodSync(join(folder, file), 0o755);
    }
  }

  async start(config: { timeoutMs?: number; maxAttempts?: number; environment?: NodeJS.ProcessEnv } = {}) {
    const { timeoutMs = 10_000, maxAttempts = 3, environment = process.env } = config;
    this.hooks = await FileHooks.start({
      ...{ home: this.home, host: this.host, dispatcher: this.dispatcher, store: this.opened.store, log: this.log },
      ...{ timeoutMs, maxAttempts },
      environment: { ...environment, HOME: this.home },
    });
    return this.hooks;
  }

  /** Everything that hands out events is gone, as after a crash; what is in the store stays. */
  async crash(): Promise<void> {
    await this.#dispatcher.stop();
    await this.hooks?.stop();
    this.hooks = null;
    this.#dispatcher = this.#makeDispatcher();
  }

  /** A message and its answer: `session:start` if it is the first, `agent:start`, `agent:end`. */
  async talk(chat: number | string): Promise<string> {
    const { engine } = this;
    const { session, turn } = await engine.receive({
      conversation: chatConversation(chat),
      text: 'hi',
      originRef: null,
      by: 'user',
    });
    const hold = { sessionId: session.id, epoch: session.epoch };
    await engine.finish(hold, turn.id, { outcome: 'done', response: 'ok', model: null, usage: null });
    return session.id;
  }

  async subscriber(name: string): Promise<SubscriberStatus | undefined> {
    return (await this.opened.store.read('listSubscribers', {})).find((each) => each.name === name);
  }

  /** The lines of a file in the home, each as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  lines(file: string): any[] {
    const path = join(this.home, file);
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  async close(): Promise<void> {
    await this.#dispatcher.stop();
    await this.hooks?.stop();
    await this.host.stop();
    await this.opened.remove();
    rmSync(this.home, { recursive: true, force: true });
  }

  #makeDispatcher(): Dispatcher {
    return new Dispatcher({
      ...this.engine.queueDeps((error) => console.error(error)),
      store: this.engine.store,
    });
  }
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (const end = Date.now() + patience(ms); !(await holds()); await new Promise((next) => setTimeout(next, 20))) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
  }
}

export function manifest(events: string, more = ''): string {
  return `events: [${events}]\n${more}`;
}

/** A handler in TypeScript that notes each event in a file of the home, after its own code. */
export function noting(code = ''): string {
  return `import { appendFileSync } from 'node:fs';
export async function handle(eventType: string, context: Record<string, unknown>): Promise<void> {
  const note = (file: string, value: unknown) =>
    appendFileSync(\`\${process.env.MOIRAI_HOME}/\${file}\`, \`\${JSON.stringify(value)}\\n\`);
  ${code}
  note('notes', { eventType, context, pid: process.pid });
}
`;
}
