import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { until } from '../cli/cli-fixture.ts';
import { patience } from '../support/patience.ts';
import type { GatewayProcess } from './process.ts';
import { TelegramScene } from './telegram-scene.ts';

const EVERY_MS = 1000;
const LOOK_MS = 200;

export interface TroubleSceneOptions {
  readonly settings?: Record<string, unknown>;
  readonly environment?: Readonly<Record<string, string>>;
  /** People who talk at the same time. */
  readonly chats: number;
  /** As the store is opened from outside at the end. */
  readonly storeUrl?: string;
}

/** What `/ready` said, and when. */
interface ReadyAnswer {
  readonly asked: number;
  readonly answered: number;
  readonly status: number;
  readonly code: string;
}

/** A real gateway between a Bot API and a model, with people who go on talking whatever happens to its store. */
export class TroubleScene {
  readonly gateway: GatewayProcess;
  readonly #scene: TelegramScene;
  readonly #options: TroubleSceneOptions;
  readonly #chats: readonly number[];
  readonly #readiness: ReadyAnswer[] = [];
  readonly #pid: number;
  #said = 0;
  #closed = false;

  private constructor(scene: TelegramScene, gateway: GatewayProcess, options: TroubleSceneOptions) {
    this.#scene = scene;
    this.gateway = gateway;
    this.#options = options;
    this.#pid = gateway.pid;
    this.#chats = Array.from({ length: options.chats }, (_, i) => 1000 + i);
    void this.#lookAtReadiness();
  }

  static async open(options: TroubleSceneOptions): Promise<TroubleScene> {
    const scene = await TelegramScene.open();
    const gateway = scene.gateway(options.settings ?? {}, { allow: ['*'] });
    await gateway.start(options.environment);
    return new TroubleScene(scene, gateway, options);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#scene.close();
  }

  /** Everybody says something each second. */
  async talk(ms: number): Promise<void> {
    for (const end = performance.now() + ms; performance.now() < end; await sleep(EVERY_MS)) {
      this.#said++;
      for (const chat of this.#chats) this.#scene.bot.say({ text: `m${this.#said}`, chat, from: chat });
    }
  }

  /** Each message was answered once and in order, by the process that was there in the beginning; nothing is left over. */
  async expectAllAnswered(ms = 150_000): Promise<void> {
    const all = Array.from({ length: this.#said }, (_, i) => `m${i + 1}`);
    const last = all.at(-1) ?? '';
    await until('all are answered', () => this.#chats.every((chat) => this.#answered(chat).includes(last)), ms);
    for (const chat of this.#chats) expect([chat, this.#answered(chat)]).toEqual([chat, all]);
    expect(this.gateway.pid).toBe(this.#pid);
    await until('it is ready', async () => (await this.#ready()).status === 200, ms);
    await this.#expectNothingLeft(ms);
  }

  /** `/ready` was 200 again within 2 s of the end of the trouble; a busy machine gets more. */
  expectReadySoonAfter(ended: number): void {
    const first = this.#readiness.find(({ asked, status }) => asked >= ended && status === 200);
    expect((first?.answered ?? Number.POSITIVE_INFINITY) - ended).toBeLessThan(patience(2000 + 2 * LOOK_MS));
  }

  /** From 2 s after the trouble began until it ended, `/ready` was 503 with one of these codes. */
  expectHonest(began: number, ended: number, codes: readonly string[]): void {
    const slack = 2000 + 3 * LOOK_MS;
    const during = this.#readiness.filter(({ asked, answered }) => asked > began + slack && answered < ended);
    expect(during.length).toBeGreaterThan(0);
    expect(during.filter(({ status }) => status !== 503)).toEqual([]);
    for (const { code } of during) expect(codes).toContain(code);
  }

  /** A lease was kept, or it was lost, and then whoever had it wrote nothing more. Returns how many were lost. */
  async expectOneLeaseAtATime(): Promise<number> {
    const events = await this.gateway.events();
    const lost = new Set<unknown>();
    for (const { type, instance, id } of events) {
      if (type === 'instance:lost') lost.add(instance);
      else expect([id, lost.has(instance)]).toEqual([id, false]);
    }
    const started = new Set(events.filter(({ type }) => type === 'gateway:startup').map(({ instance }) => instance));
    expect(started.size).toBe(lost.size + 1);
    return lost.size;
  }

  #answered(chat: number): string[] {
    return this.#scene.textsIn(chat).flatMap((text) => [...text.matchAll(/m\d+/g)].map(([m]) => m));
  }

  async #lookAtReadiness(): Promise<void> {
    for (; !this.#closed; await sleep(LOOK_MS)) {
      const asked = performance.now();
      const answer = await this.#ready().catch(() => null);
      if (answer !== null) this.#readiness.push({ asked, answered: performance.now(), ...answer });
    }
  }

  async #ready(): Promise<{ status: number; code: string }> {
    const response = await fetch(`${this.gateway.url}/ready`, { signal: AbortSignal.timeout(10_000) });
    const { checks } = (await response.json()) as { checks: { store: { detail: string } } };
    return { status: response.status, code: checks.store.detail };
  }

  async #expectNothingLeft(ms: number): Promise<void> {
    const url = this.#options.storeUrl ?? 'sqlite:state.db';
    const store = await openStore(url, this.gateway.home, DEFAULT_RESET_RULES, { inline: true });
    try {
      await until(
        'nothing is under way',
        async () => {
          const turns = await store.read('unfinishedTurns', { limit: 10 });
          const platforms = Object.keys(await store.read('countDeliveries', {}));
          return turns.length + platforms.length === 0;
        },
        ms,
      );
      for (const { id } of await store.read('listInstances', {})) {
        const held = await store.read('heldBy', { instance: id });
        expect(held.claims).toEqual([]);
        expect(held.sessions.filter(({ running }) => running)).toEqual([]);
      }
      expect((await store.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
    } finally {
      await store.close();
    }
  }
}
