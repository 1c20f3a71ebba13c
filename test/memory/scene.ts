import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/engine.ts';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { SESSION_KINDS } from '../../src/lifecycle/states.ts';
import { createLogger } from '../../src/log/logger.ts';
import { MemoryManager, type MemoryOptions } from '../../src/memory/memory-manager.ts';
import type { EndedSession, MemoryProvider } from '../../src/memory/provider.ts';
import { processTimers } from '../../src/queue/timers.ts';
import type { StoreClock } from '../../src/store/clock.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { SubscriberStatus } from '../../src/store/transactions/subscribers.ts';
import { patience } from '../support/patience.ts';
import { bootTestEngine, chatConversation, type ENGINES, openTestStore, type TestStore } from '../support/stores.ts';

/** A home, a real store, and memory that hears of what happens in it. */
export class Scene {
  readonly home = mkdtempSync(join(tmpdir(), 'moirai-memory-'));
  readonly opened: TestStore;
  readonly engine: Engine;
  readonly logged: string[] = [];
  readonly log = createLogger({
    ...{ level: 'debug', format: 'json' },
    stream: { write: (line) => this.logged.push(line) },
  });
  readonly #stops: (() => Promise<void>)[] = [];

  private constructor(opened: TestStore, engine: Engine) {
    this.opened = opened;
    this.engine = engine;
  }

  static async open(
    engine: (typeof ENGINES)[number] = 'sqlite',
    rules?: ResetRules,
    clock?: StoreClock,
  ): Promise<Scene> {
    const opened = await openTestStore(engine, rules, clock);
    return new Scene(opened, await bootTestEngine(opened.store, 1_000_000_000));
  }

  /** On a file that another process left. */
  static async onFile(path: string): Promise<Scene> {
    const store = await SqliteStore.open(path, DEFAULT_RESET_RULES);
    const again = () => SqliteStore.open(path, DEFAULT_RESET_RULES);
    return new Scene({ store, url: `sqlite:${path}`, again, remove: () => store.close() }, await bootTestEngine(store));
  }

  /** Begins to tell providers, with a dispatcher of their own. */
  async remember(
    providers: readonly MemoryProvider[],
    rest: Partial<Pick<MemoryOptions, 'prefetchMs' | 'delivery'>> = {},
  ): Promise<MemoryManager> {
    const { engine, home, log } = this;
    const { store } = engine;
    const dispatcher = new Dispatcher({
      ...engine.queueDeps((error) => console.error(error)),
      store,
    });
    const manager = new MemoryManager({
      ...{ providers, home, store, dispatcher, timers: processTimers, log, ...rest },
    });
    await manager.begin();
    this.#stops.push(async () => {
      await manager.stop();
      await dispatcher.stop();
    });
    return manager;
  }

  /** Nobody tells the providers any more, as after a crash; what is in the store stays. */
  async fallSilent(): Promise<void> {
    for (const stop of this.#stops.splice(0)) await stop();
  }

  /** A person writes and is answered; both are in the transcript. */
  async talk(text: string, conversation: ConversationRef = chatConversation(1)): Promise<string> {
    const { engine } = this;
    const { session, turn } = await engine.receive({ conversation, text, originRef: null, by: 'user' });
    const turnId = turn.id;
    await engine.finish({ sessionId: session.id, epoch: session.epoch }, turnId, {
      ...{ outcome: 'done', response: `heard: ${text}`, model: null, usage: null },
      messages: [
        { role: 'user', text, turnId },
        { role: 'assistant', text: `heard: ${text}`, turnId },
      ],
    });
    return session.id;
  }

  async subscriber(name: string): Promise<SubscriberStatus | undefined> {
    return (await this.opened.store.read('listSubscribers', {})).find((each) => each.name === name);
  }

  async close(): Promise<void> {
    await this.fallSilent();
    await this.opened.remove();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Remembers every end it is told of. */
export class Recorder implements MemoryProvider {
  readonly name: string;
  readonly kinds = SESSION_KINDS;
  readonly ends: EndedSession[] = [];

  constructor(name = 'recorder') {
    this.name = name;
  }

  onSessionEnd(ended: EndedSession): void {
    this.ends.push(ended);
  }

  of(sessionId: string): EndedSession[] {
    return this.ends.filter(({ session }) => session.id === sessionId);
  }
}

export function textsOf({ messages }: Pick<EndedSession, 'messages'>): string[] {
  return messages.map(({ text }) => text);
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (const end = Date.now() + patience(ms); !(await holds()); await new Promise((next) => setTimeout(next, 20))) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
  }
}
