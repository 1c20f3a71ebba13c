import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRunner } from '../../src/agent/create-runner.ts';
import type { AgentRunner } from '../../src/agent/runner.ts';
import type { ToolPorts } from '../../src/agent/tools/ports.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { buildKey } from '../../src/lifecycle/session-key.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { MemoryProvider } from '../../src/memory/provider.ts';
import { machineClock } from '../../src/store/clock.ts';
import type { Store } from '../../src/store/port.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { Message } from '../../src/store/transactions/messages.ts';
import type { SubscriberStatus } from '../../src/store/transactions/subscribers.ts';
import { patience } from '../support/patience.ts';
import { ScriptedRunner } from './scripted-runner.ts';

export interface Cast {
  /** Whatever a plugin would bring; `memory.provider` has to name it. */
  readonly providers?: readonly MemoryProvider[];
  /** With a real agent, `model` of the settings says which. */
  readonly real?: boolean;
  readonly primary?: boolean;
}

/** A gateway that remembers, in this process and on a real store. */
export class MemoryScene {
  readonly home = mkdtempSync(join(tmpdir(), 'moirai-remembers-'));
  readonly logged: string[] = [];
  readonly #cast: Cast;
  runner = new ScriptedRunner();
  ports: ToolPorts = {};
  gateway!: Gateway;
  store!: Store;

  private constructor(cast: Cast) {
    this.#cast = cast;
  }

  static async open(settings: Record<string, unknown> = {}, cast: Cast = {}): Promise<MemoryScene> {
    const scene = new MemoryScene(cast);
    scene.configure(settings);
    await scene.start();
    return scene;
  }

  configure(settings: Record<string, unknown>): void {
    writeFileSync(join(this.home, 'config.yaml'), JSON.stringify(settings));
  }

  async start(cast: Cast = this.#cast): Promise<void> {
    const { providers = [], real = false, primary = true } = cast;
    const config = loadConfig({ home: this.home, env: {} });
    this.runner = new ScriptedRunner();
    this.store = new InlineSqliteStore(join(this.home, 'state.db'), machineClock, config.sessions);
    const log = createLogger({ level: 'debug', format: 'json', stream: { write: (line) => this.logged.push(line) } });
    this.gateway = await Gateway.start({
      ...{ config, store: this.store, version: 'test', platforms: [], restart: null, log, primary },
      environment: { PATH: process.env.PATH },
      memoryProviders: providers,
      makeRunner: (ports): AgentRunner => {
        this.ports = ports;
        return real ? createRunner(config, ports, log) : this.runner;
      },
      lost: () => undefined,
    });
  }

  async stop(): Promise<void> {
    await this.gateway.stop('restart');
    await this.store.close();
  }

  async close(): Promise<void> {
    this.runner.release();
    await this.stop().catch(() => undefined); // It may have been stopped by the test.
    rmSync(this.home, { recursive: true });
  }

  /** Says something in a direct chat, or as one of several in a group, and waits for the answer. */
  async ask(conversation: ConversationRef, text: string): Promise<string> {
    const heard = await this.gateway.conversations.receive({ conversation, text, originRef: null });
    if (heard.type === 'answer') return heard.text;
    return (await heard.channel.ended)?.response ?? '';
  }

  async sessionId(conversation: ConversationRef): Promise<string> {
    const session = await this.store.read('openSession', { key: conversation.key });
    if (session === null) throw new TypeError(`nothing is open in ${conversation.key}`);
    return session.id;
  }

  async end(conversation: ConversationRef): Promise<string> {
    const id = await this.sessionId(conversation);
    await this.gateway.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    return id;
  }

  messages(sessionId: string): Promise<Message[]> {
    return this.store.read('listMessages', { sessionId, after: 0, limit: 500 });
  }

  async subscriber(name: string): Promise<SubscriberStatus | undefined> {
    return (await this.store.read('listSubscribers', {})).find((each) => each.name === name);
  }

  async until(what: string, holds: () => Promise<boolean> | boolean, ms = 10_000): Promise<void> {
    const deadline = performance.now() + patience(ms);
    while (!(await holds())) {
      if (performance.now() > deadline) throw new TypeError(`in vain: ${what}\n${this.logged.join('')}`);
      await sleep(10);
    }
  }
}

export function direct(user: string): ConversationRef {
  const key = buildKey({ profile: 'main', platform: 'pigeon', type: 'dm', chat: user });
  return { key, kind: 'chat', platform: 'pigeon', userId: user, origin: null, attached: false };
}

/** A group in which everybody has a session of their own, or `shared` by all of them. */
export function inGroup(user: string, shared = false): ConversationRef {
  const group = { profile: 'main', platform: 'pigeon', type: 'group', chat: 'club' } as const;
  const key = buildKey(shared ? group : { ...group, participant: user });
  return { key, kind: 'chat', platform: 'pigeon', userId: user, origin: null, attached: false };
}
