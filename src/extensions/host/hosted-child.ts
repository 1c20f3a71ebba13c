import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setPriority } from 'node:os';
import { type LineBudget, type LineLimits, readLines } from './output-lines.ts';
import { findFamily, residentMb } from './process-family.ts';
import type { ProcessReaper } from './process-reaper.ts';
import { type FromHost, MARKER, type OutputStream, type ProcessSpec } from './protocol.ts';

const OUTPUT: LineLimits = { longestBytes: 16 * 1024, bytesPerSecond: 4 * 1024 * 1024 };
const CHANNEL: LineLimits = { longestBytes: 8 * 1024 * 1024, bytesPerSecond: 32 * 1024 * 1024 };
/** When memory runs out, an extension goes before the gateway. */
const FIRST_TO_GO = '500';
/** What it said last is read for so long after its end. */
const LAST_WORDS_MS = 500;

export interface HostedChildDeps {
  /** Of the host process. */
  readonly token: string;
  readonly reaper: ProcessReaper;
  readonly budget: LineBudget;
  readonly send: (message: FromHost) => void;
  /** Whatever still carries this number's marker is to be killed. */
  readonly sweep: (number: number) => void;
}

/** One process of an extension, in the host process: started, listened to within limits, and killed with all it started. */
export class HostedChild {
  readonly #number: number;
  readonly #spec: ProcessSpec;
  readonly #deps: HostedChildDeps;
  #child: ChildProcess | null = null;
  #why: string | null = null;
  #over = false;

  constructor(number: number, spec: ProcessSpec, deps: HostedChildDeps) {
    this.#number = number;
    this.#spec = spec;
    this.#deps = deps;
  }

  start(): void {
    const { command, folder, environment, stdin } = this.#spec;
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...environment, [MARKER]: `${this.#deps.token}.${this.#number}` },
      stdio: [stdin === null ? 'ignore' : 'pipe', 'pipe', 'pipe', stdin === null ? 'pipe' : 'ignore'],
      detached: true,
    });
    this.#child = child;
    for (const stream of child.stdio) stream?.on('error', () => undefined); // Its exit says it all.
    child.once('error', (cause: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#exited(null, `did not start: ${cause.code}`, true);
    });
    child.once('exit', (code, signal) => this.#onExit(child, code, signal));
    if (child.pid === undefined) return;
    this.#deps.reaper.watch(child.pid);
    this.#lowerPriority(child.pid);
    this.#listen(child);
    if (stdin !== null) child.stdin?.end(stdin);
  }

  write(line: string): void {
    this.#channel?.write(`${line}\n`);
  }

  /** Closes the channel: a runner leaves then. */
  end(): void {
    this.#channel?.end();
  }

  /** Kills it with all it started. The first reason is the one that counts. */
  kill(why: string): void {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#over) return;
    this.#why ??= why;
    killAll(findFamily(pid, this.#deps.token, this.#number));
    killAll([-pid]);
    this.#deps.sweep(this.#number);
  }

  /** Kills it when it has more in memory than it may. */
  checkMemory(): void {
    const pid = this.#child?.pid;
    const { memoryMb } = this.#spec;
    if (pid === undefined || this.#over || residentMb(pid) <= memoryMb) return;
    this.kill(`used more than ${memoryMb} MB of memory, and was killed`);
  }

  get #channel(): Socket | null {
    return (this.#child?.stdio[3] as Socket | null | undefined) ?? null;
  }

  #listen({ stdout, stderr }: ChildProcess): void {
    const { send, budget } = this.#deps;
    const process = this.#number;
    const print = (stream: OutputStream) => ({
      wants: () => budget.take(),
      take: (line: string) => {
        if (stream === 'stderr' && line.includes('heap out of memory')) this.#why ??= 'ran out of memory';
        send({ type: 'printed', process, stream, line });
      },
    });
    if (stdout !== null) readLines(stdout, OUTPUT, print('stdout'));
    if (stderr !== null) readLines(stderr, OUTPUT, print('stderr'));
    if (this.#channel === null) return;
    readLines(this.#channel, CHANNEL, {
      take: (line) => send({ type: 'line', process, line }),
      tooLong: () => this.kill('wrote 8 MB to its channel without an end of line, and was killed'),
    });
  }

  #onExit(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    this.#over = true;
    const pid = child.pid ?? 0;
    // What it started and left behind keeps its output open, and goes with it.
    killAll([-pid]);
    this.#deps.sweep(this.#number);
    this.#deps.reaper.forget(pid);
    const done = (): void => {
      clearTimeout(late);
      for (const stream of child.stdio) stream?.destroy();
      this.#exited(code, this.#why ?? (signal === null ? `exited with ${code}` : `was ended by ${signal}`), false);
    };
    const late = setTimeout(done, LAST_WORDS_MS);
    child.once('close', done);
  }

  #exited(code: number | null, why: string, lost: boolean): void {
    this.#over = true;
    this.#deps.send({ type: 'exit', process: this.#number, exit: { code, why, lost } });
  }

  #lowerPriority(pid: number): void {
    const { niceness } = this.#spec;
    try {
      setPriority(pid, niceness);
    } catch {
      // It is gone already; its exit says it all.
    }
    // Only Linux has these, and nothing depends on them. Each session is scheduled as a group of its own there, and the
    // priority of a process counts within its group only. Half of it for the group: on a busy machine hooks go on.
    writeFile(`/proc/${pid}/autogroup`, String(Math.floor(niceness / 2))).catch(() => undefined);
    writeFile(`/proc/${pid}/oom_score_adj`, FIRST_TO_GO).catch(() => undefined);
  }
}

/** A negative number is a group. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It is gone: that is what was wanted.
    }
  }
}
