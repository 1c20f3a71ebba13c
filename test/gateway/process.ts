import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { NODE_FLAGS } from '../../src/cli/gateway/launch.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { launcher, sourceLauncher } from '../cli/cli-fixture.ts';

export interface ChatAnswer {
  readonly status: number;
  readonly session_id: string;
  readonly turn_id: string | null;
  readonly reply: string;
  readonly outcome: string;
}

/** A gateway as a process of its own, in a home of its own; it can be killed and started again. */
export class GatewayProcess {
  readonly home: string;
  url = '';
  /** What it printed when it was ready. */
  started: { readonly url: string; readonly [fact: string]: unknown } = { url: '' };
  #child: ChildProcess | null = null;
  #errors = '';

  constructor(
    settings: { readonly [section: string]: unknown } = {},
    home: string = mkdtempSync(join(tmpdir(), 'moirai-gateway-')),
  ) {
    this.home = home;
    const gateway = { port: 0, ...(settings.gateway as object | undefined) };
    writeFileSync(join(this.home, 'config.yaml'), JSON.stringify({ ...settings, gateway }));
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** What it wrote to its log. */
  get log(): string {
    return this.#errors;
  }

  /** Resolves when it says where it listens. From its sources each module is one that is loaded. */
  async start(more: Readonly<Record<string, string>> = {}, fromSources = false): Promise<number> {
    const began = performance.now();
    const { MOIRAI_DEBUG: _, OPENAI_API_KEY: _o, ANTHROPIC_API_KEY: _a, ...rest } = process.env;
    const { OTEL_EXPORTER_OTLP_ENDPOINT: _e, NODE_COMPILE_CACHE: _c, ...env } = rest;
    const child = spawn(
      process.execPath,
      [...NODE_FLAGS, fromSources ? sourceLauncher : launcher, 'gateway', 'run', '--json'],
      {
        env: { ...env, MOIRAI_HOME: this.home, ...more },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    this.#child = child;
    child.stderr.on('data', (bytes) => {
      this.#errors += bytes;
    });
    const lines = createInterface({ input: child.stdout });
    const ready = new Promise<void>((resolve, reject) => {
      let shown = '';
      lines.on('line', (line) => {
        shown += line;
        if (line !== '}') return;
        this.started = JSON.parse(shown) as typeof this.started;
        // It may begin again, and say so again.
        shown = '';
        this.url = this.started.url;
        resolve();
      });
      child.once('exit', (code) => reject(new TypeError(`the gateway exited with ${code}: ${this.#errors}`)));
    });
    await ready;
    return performance.now() - began;
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.home, { recursive: true });
  }

  async chat(body: Readonly<Record<string, unknown>>): Promise<ChatAnswer> {
    const { status, answer } = await this.post('/v1/chat', body);
    return { status, ...(answer as Omit<ChatAnswer, 'status'>) };
  }

  async post(path: string, body: unknown): Promise<{ status: number; answer: unknown }> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${this.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, answer: await response.json() };
  }

  async get<T>(path: string): Promise<T> {
    const response = await fetch(`${this.url}${path}`);
    return (await response.json()) as T;
  }

  /** Runs `moirai` in the same home. */
  async moirai(...args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
    const child = spawn(process.execPath, [launcher, ...args], {
      env: { ...process.env, MOIRAI_HOME: this.home },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    return { code, output, errors };
  }

  /** How many turns wait behind those that run, by the store. */
  async waiting(): Promise<number> {
    const store = await openStore('sqlite:state.db', this.home, DEFAULT_RESET_RULES, { inline: true });
    try {
      const turns = await store.read('unfinishedTurns', { limit: 100 });
      return turns.filter(({ state }) => state === 'queued').length;
    } finally {
      await store.close();
    }
  }

  /** All events, page by page. */
  async events(types = ''): Promise<Record<string, unknown>[]> {
    const all: Record<string, unknown>[] = [];
    for (let after = 0; ; ) {
      const page = await this.get<{ data: Record<string, unknown>[]; next: number }>(
        `/v1/events?after=${after}&limit=500&types=${types}`,
      );
      all.push(...page.data);
      if (page.data.length === 0) return all;
      after = page.next;
    }
  }
}
