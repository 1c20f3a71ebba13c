import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolPorts } from '../../src/agent/tools/ports.ts';
import type { ToolBox } from '../../src/agent/tools/tool-box.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Sender, SendRequest, Target } from '../../src/platforms/platform.ts';
import { type ConfiguredPlatform, configuredPlatforms } from '../../src/platforms/registry.ts';
import { machineClock } from '../../src/store/clock.ts';
import type { Store } from '../../src/store/port.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { Message } from '../../src/store/transactions/messages.ts';
import type { Span } from '../../src/tracing/tracer.ts';
import type { ReceiveResult } from '../../src/turns/conversations.ts';
import { patience } from '../support/patience.ts';
import { ScriptedRunner } from './scripted-runner.ts';

/** A platform that takes whatever is sent, or refuses it as told. */
export class Pigeons implements Sender {
  readonly name = 'pigeon';
  readonly sent: { readonly target: Target; readonly text: string }[] = [];
  refuse: ((target: Target, text: string) => Error | null) | null = null;
  /** Sending takes until it is given up. */
  silent = false;

  async send({ target, text }: Pick<SendRequest, 'target' | 'text'>, signal: AbortSignal): Promise<null> {
    if (this.silent) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const refusal = this.refuse?.(target, text) ?? null;
    if (refusal !== null) throw refusal;
    this.sent.push({ target, text });
    return null;
  }

  textsTo(chat: string): string[] {
    return this.sent.filter(({ target }) => target.chat === chat).map(({ text }) => text);
  }
}

/** A gateway in this process, on a real store, with a scripted agent and pigeons. */
export class Scene {
  readonly home: string;
  readonly pigeons = new Pigeons();
  /** What a collector would get. */
  readonly spans: Span[] = [];
  record: (span: Span) => void = (span) => this.spans.push(span);
  readonly #settings: string;
  runner = new ScriptedRunner();
  #aheadMs = 0;
  /** Chat platforms beside those of the configuration. */
  readonly #chat: readonly ConfiguredPlatform[];
  /** What the tools of its agent may ask for. */
  ports: ToolPorts = {};
  gateway!: Gateway;
  store!: Store;

  private constructor(home: string, settings: string, chat: readonly ConfiguredPlatform[]) {
    this.home = home;
    this.#settings = settings;
    this.#chat = chat;
  }

  static async open(
    settings: Record<string, unknown> = {},
    prepare?: (home: string) => void,
    chat: readonly ConfiguredPlatform[] = [],
  ): Promise<Scene> {
    const scene = new Scene(mkdtempSync(join(tmpdir(), 'moirai-gateway-')), JSON.stringify(settings), chat);
    writeFileSync(join(scene.home, 'config.yaml'), scene.#settings);
    prepare?.(scene.home);
    await scene.start();
    return scene;
  }

  /** A process starts in the same home, after the last one stopped. */
  async start(): Promise<void> {
    const config = loadConfig({ home: this.home, env: {} });
    this.runner = new ScriptedRunner();
    const clock = { now: () => Date.now() + this.#aheadMs, lease: machineClock.lease };
    this.store = new InlineSqliteStore(join(this.home, 'state.db'), clock, config.sessions);
    const log = createLogger({ level: 'silent', format: 'json' });
    this.gateway = await Gateway.start({
      ...{ config, store: this.store, version: 'test', platforms: [this.pigeons], primary: true, restart: null },
      environment: { PATH: process.env.PATH },
      log,
      makeRunner: (ports) => {
        this.ports = ports;
        const { agent, mcp } = config;
        let box: ToolBox | null = null;
        this.runner.tools = async () => {
          box ??= new (await import('../../src/agent/tools/tool-box.ts')).ToolBox({ agent, mcp, ports, log });
          return box.tools();
        };
        return this.runner;
      },
      chat: [...configuredPlatforms(config), ...this.#chat],
      lost: () => undefined,
      tracer: { record: (span) => this.record(span), close: async () => undefined },
    });
  }

  async stop(reason: 'restart' | 'shutdown' = 'shutdown'): Promise<void> {
    await this.gateway.stop(reason);
    await this.store.close();
  }

  async close(): Promise<void> {
    this.runner.release();
    await this.stop().catch(() => undefined); // It may have been stopped by the test.
    rmSync(this.home, { recursive: true });
  }

  /** Time goes by. */
  later(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Starts the jobs that are due. A gateway that has just begun settles first what was left. */
  async startDueJobs(): Promise<void> {
    await this.until('jobs are taken', () => this.gateway.cron.startDue());
  }

  conversation(chat: string): ConversationRef {
    const key = `agent:main:pigeon:dm:${chat}`;
    return { key, kind: 'chat', platform: 'pigeon', userId: `user-${chat}`, origin: { chat }, attached: false };
  }

  say(chat: string, text: string, originRef: string | null = null): Promise<ReceiveResult> {
    return this.gateway.conversations.receive({ conversation: this.conversation(chat), text, originRef });
  }

  /** Says something and waits for the end of its turn. */
  async ask(chat: string, text: string): Promise<string> {
    const heard = await this.say(chat, text);
    if (heard.type === 'answer') return heard.text;
    return (await heard.channel.ended)?.response ?? '';
  }

  async open(chat: string): Promise<Session | null> {
    return this.store.read('openSession', { key: this.conversation(chat).key });
  }

  async sessionOf(chat: string): Promise<Session> {
    const session = await this.open(chat);
    if (session === null) throw new TypeError(`no session of ${chat} is open`);
    return session;
  }

  session(sessionId: string): Promise<Session> {
    return this.store.read('findSession', { idOrPrefix: sessionId });
  }

  messages(sessionId: string): Promise<Message[]> {
    return this.store.read('listMessages', { sessionId, after: 0, limit: 500 });
  }

  async events(): Promise<(MoiraiEvent & { seq: number })[]> {
    const { events } = await this.store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    return events.map(({ seq, event }) => ({ ...event, seq }));
  }

  async until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
    const deadline = performance.now() + patience(10_000);
    while (!(await holds())) {
      if (performance.now() > deadline) throw new TypeError(`in vain: ${what}`);
      await sleep(10);
    }
  }
}
