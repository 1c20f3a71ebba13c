import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Engine } from '../../src/engine/engine.ts';
import { describeThisProcess } from '../../src/engine/host.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../src/store/open-store.ts';
import { patience } from '../support/patience.ts';
import { runResident } from './resident.ts';

/** What starts `moirai` from its sources, module by module. */
export const sourceLauncher = fileURLToPath(new URL('../../bin/moirai.js', import.meta.url));

/** What starts `moirai`: in a run of the tests its sources in few files, see `bundle-setup.ts`. */
export const launcher = process.env.MOIRAI_TEST_LAUNCHER ?? sourceLauncher;
const HOUR = 3_600_000;
const WORK_IN_STORE = ['sessions', 'events', 'doctor', 'memory', 'cron', 'hooks', 'pairing', 'config'];

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly errors: string;
}

export type Process = ChildProcessWithoutNullStreams;

/** A home of its own, in which real `moirai` processes run. */
export class CliFixture {
  readonly home = mkdtempSync(join(tmpdir(), 'moirai-cli-'));
  readonly #store: string | null;
  readonly #started: Process[] = [];

  constructor(store: string | null = null) {
    this.#store = store;
  }

  /** Starts `moirai` with these arguments; its input stays open. */
  start(args: readonly string[], options: { node?: string; env?: Record<string, string> } = {}): Process {
    const store = this.#store === null ? [] : ['--store', this.#store];
    return this.spawn(options.node ?? process.execPath, [launcher, ...store, ...args], options.env);
  }

  /** Starts anything in this home. */
  spawn(command: string, args: readonly string[], more: Record<string, string> = {}): Process {
    // What the test run itself was given is no part of the world of those it starts.
    const { MOIRAI_DEBUG: _, NODE_COMPILE_CACHE: _c, ...env } = process.env;
    const child = spawn(command, args, { env: { ...env, MOIRAI_HOME: this.home, ...more } });
    child.stdin.on('error', () => undefined); // It ended without reading; nobody minds.
    this.#started.push(child);
    return child;
  }

  /** Starts a shell's line in a terminal of its own; what is written to its input is typed. */
  terminal(line: string): Process {
    return this.spawn('script', ['-qfec', line, '/dev/null']);
  }

  /** Runs `moirai` to its end, on an empty input. */
  async moirai(...args: string[]): Promise<Outcome> {
    return this.feed('', ...args);
  }

  /** The same with something to read. */
  async feed(input: string, ...args: string[]): Promise<Outcome> {
    const child = this.start(args);
    child.stdin.end(input);
    return finish(child);
  }

  /** What a command prints with `--json`; it must succeed. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  async json(...args: string[]): Promise<any> {
    const { code, output, errors } = await this.#look(...args, '--json');
    if (code !== 0) throw new Error(`moirai ${args.join(' ')} exited with ${code}: ${errors}`);
    return JSON.parse(output);
  }

  /** The events of the log, as `events --json` prints them. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  async events(...args: string[]): Promise<any[]> {
    const { output } = await this.#look('events', '--json', ...args);
    return output
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** Does something in the store as a gateway would. */
  async live<T>(action: (engine: Engine) => Promise<T>): Promise<T> {
    const store = await openStore(this.#store ?? 'sqlite:state.db', this.home, DEFAULT_RESET_RULES, { inline: true });
    const ids = timeSortedIds(Date.now, Math.random);
    const instance = { id: ids.command().replace('cmd', 'ins'), name: null, version: '0', ...describeThisProcess() };
    const engine = await Engine.boot({ store, ids, instance, leaseTtlMs: HOUR });
    try {
      return await action(engine);
    } finally {
      await engine.stop();
      await store.close();
    }
  }

  /** Starts a `run` of a shell script that tells its process id once it is ready; `setup` comes before. */
  async startRun(
    script: string,
    options: { setup?: string; node?: string } = {},
  ): Promise<{ wrapper: Process; pid: number }> {
    const { setup = ':', ...rest } = options;
    const wrapper = this.start(['run', '--', 'sh', '-c', `${setup}; echo $$; ${script}`], rest);
    const [line] = await once(wrapper.stdout, 'data');
    return { wrapper, pid: Number(String(line).trim()) };
  }

  /** Stops a process of this home while it writes nothing: one that is stopped in a write keeps everybody from writing. */
  pause(pid: number): void {
    const database = new DatabaseSync(join(this.home, 'state.db'), { timeout: Math.round(patience(10_000)) });
    database.exec('BEGIN IMMEDIATE');
    process.kill(pid, 'SIGSTOP');
    while (!/^\d+ \(.*\) T/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
    database.close();
  }

  /** Like `moirai`, but commands that only work in the store do it in a process that stays. */
  async #look(...args: string[]): Promise<Outcome> {
    if (!WORK_IN_STORE.includes(args[0] ?? '')) return this.moirai(...args);
    const store = this.#store === null ? [] : ['--store', this.#store];
    return runResident({ args: [...store, ...args], home: this.home });
  }

  remove(): void {
    for (const child of this.#started) child.kill('SIGKILL');
    rmSync(this.home, { recursive: true, force: true });
  }
}

export async function finish(child: Process): Promise<Outcome> {
  const [output, errors, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { code, signal, output, errors };
}

/** A direct chat of a platform's. */
export function chat(n: number | string, platform = 'telegram') {
  return {
    key: `agent:main:${platform}:dm:${n}`,
    kind: 'chat' as const,
    platform,
    userId: `user-${n}`,
    origin: null,
    attached: false,
  };
}

/** One message and its answer. */
export async function converse(
  engine: Engine,
  conversation: ReturnType<typeof chat>,
  question: string,
  answer: string,
) {
  const { session, turn } = await engine.receive({ conversation, text: question, originRef: null, by: 'user' });
  await engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, {
    outcome: 'done',
    response: answer,
    model: 'test',
    usage: { input: 3, output: 5 },
    messages: [
      { role: 'user', text: question, turnId: turn.id },
      { role: 'assistant', text: answer, turnId: turn.id },
    ],
  });
  return session.id;
}

/** Whether a terminal can be had here: `script` of util-linux makes one. */
export function hasTerminal(): boolean {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
}

/** True while a process runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== 'linux') return true;
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 5000): Promise<void> {
  for (const deadline = Date.now() + patience(ms); !(await holds()); await sleep(20)) {
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
  }
}
