import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setPriority } from 'node:os';
import type { Writable } from 'node:stream';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { readLines } from '../host/output-lines.ts';
import type { HandlerDeps } from './handler.ts';

const LOW_PRIORITY = 10;
/** When memory runs out, a hook goes before the gateway. */
const FIRST_TO_GO = '500';
/** The reaper may have been killed itself. */
const KILL_MS = 1000;
const LAST_WORDS_MS = 500;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * A process of a hook: in a group of its own, at low priority, known to the process reaper before it may run a line of the
 * hook's code. Its fourth stream is ours to talk to it.
 */
export class HandlerProcess {
  readonly pid: number;
  /** Resolves when it is gone, its group was killed, and its output was read. */
  readonly gone: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #deps: HandlerDeps;
  #over = false;

  private constructor(child: ChildProcess, pid: number, deps: HandlerDeps) {
    this.#child = child;
    this.pid = pid;
    this.#deps = deps;
    const { promise, resolve } = Promise.withResolvers<Exit>();
    this.gone = promise;
    child.once('exit', (code, signal) => {
      this.#over = true;
      // What it started and left behind keeps its output open, and goes with it.
      this.#killGroup();
      deps.reaper.forget(pid);
      this.channel.destroy();
      const done = (): void => resolve({ code, signal });
      const late = deps.timers.after(LAST_WORDS_MS, done);
      child.once('close', () => {
        late();
        done();
      });
    });
  }

  static async start(
    command: readonly string[],
    deps: HandlerDeps,
    options: { stdin: 'pipe' | 'ignore'; env?: Readonly<Record<string, string>> },
  ): Promise<HandlerProcess> {
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
      cwd: deps.folder,
      env: { ...deps.environment, ...options.env },
      stdio: [options.stdin, 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of child.stdio) stream?.on('error', () => undefined); // Its exit says it all.
    const pid = await pidOf(child);
    const process = new HandlerProcess(child, pid, deps);
    process.#lowerPriority();
    process.#listen();
    await deps.reaper.watch(pid);
    return process;
  }

  /** The fourth stream, both ways. */
  get channel(): Socket {
    return this.#child.stdio[3] as Socket;
  }

  get stdin(): Writable | null {
    return this.#child.stdin;
  }

  /** Kills it with all it started, and waits until it is gone. */
  async kill(): Promise<void> {
    if (!this.#over) {
      this.#deps.reaper.kill(this.pid);
      const late = this.#deps.timers.after(KILL_MS, () => this.#killGroup());
      await this.gone;
      late();
    }
    await this.gone;
  }

  #listen(): void {
    const { stdout, stderr } = this.#child;
    if (stdout !== null) readLines(stdout, (line) => this.#deps.sink('stdout', line));
    if (stderr !== null) readLines(stderr, (line) => this.#deps.sink('stderr', line));
  }

  #lowerPriority(): void {
    try {
      setPriority(this.pid, LOW_PRIORITY);
    } catch {
      // It is gone already; its exit says it all.
    }
    // Only Linux has it, and nothing depends on it.
    if (process.platform === 'linux') {
      writeFile(`/proc/${this.pid}/oom_score_adj`, FIRST_TO_GO).catch(() => undefined);
    }
  }

  #killGroup(): void {
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch {
      // Nobody is left in the group: that is what was wanted.
    }
  }
}

function pidOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid ?? 0));
    child.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new MoiraiError('subscriber_unavailable', `the handler did not start: ${cause.code}`, { cause }));
    });
  });
}

/** An end for people: `exited with 3`, `was ended by SIGSEGV`. */
export function exitText({ code, signal }: Exit): string {
  return signal === null ? `exited with ${code}` : `was ended by ${signal}`;
}
