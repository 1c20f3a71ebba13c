/**
 * The host process: starts the processes of all extensions, and listens to them. To start a process stops the one that
 * does it, the longer the more memory it has, and one that writes without end has to be read; the gateway, in which people
 * wait, does neither. No code of an extension runs here.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setPriority } from 'node:os';
import { processTimers } from '../../queue/timers.ts';
import { type LineLimits, lineBudget, readLines } from './output-lines.ts';
import { findFamily, findMarked, residentMb } from './process-family.ts';
import { ProcessReaper } from './process-reaper.ts';
import { type FromHost, MARKER, type OutputStream, type ProcessSpec, type ToHost } from './protocol.ts';

const OUTPUT: LineLimits = { longestBytes: 16 * 1024, bytesPerSecond: 4 * 1024 * 1024 };
const CHANNEL: LineLimits = { longestBytes: 8 * 1024 * 1024, bytesPerSecond: 32 * 1024 * 1024 };
/** When memory runs out, an extension goes before the gateway. */
const FIRST_TO_GO = '500';
/** What it said last is read for so long after its end. */
const LAST_WORDS_MS = 500;
const MEMORY_CHECK_MS = 250;
/** Between two looks for what ended processes left behind: a look reads all of /proc. */
const SWEEP_MS = 200;

const token = randomBytes(8).toString('hex');
const reaper = new ProcessReaper(token);
const budgets = new Map<string, () => boolean>();
const ended = new Set<number>();
let isSweeping = false;

/** One process of an extension: started, listened to within limits, and killed with all it started. */
class HostedChild {
  readonly #number: number;
  readonly #spec: ProcessSpec;
  readonly #child: ChildProcess;
  #why: string | null = null;
  #over = false;

  constructor(number: number, spec: ProcessSpec) {
    this.#number = number;
    this.#spec = spec;
    const { command, folder, environment, stdin } = spec;
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...environment, [MARKER]: `${token}.${number}` },
      stdio: [stdin === null ? 'ignore' : 'pipe', 'pipe', 'pipe', stdin === null ? 'pipe' : 'ignore'],
      detached: true,
    });
    this.#child = child;
    for (const stream of child.stdio) stream?.on('error', () => undefined); // Its exit says it all.
    child.once('error', (cause: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#exited(null, `did not start: ${cause.code}`, true);
    });
    child.once('exit', (code, signal) => this.#onExit(code, signal));
    if (child.pid === undefined) return;
    reaper.watch(child.pid);
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
    const { pid } = this.#child;
    if (pid === undefined || this.#over) return;
    this.#why ??= why;
    killAll([...findFamily(pid, token, this.#number), -pid]);
    sweep(this.#number);
  }

  /** Kills it when it has more in memory than it may. */
  checkMemory(): void {
    const { pid } = this.#child;
    const { memoryMb } = this.#spec;
    if (pid === undefined || this.#over || residentMb(pid) <= memoryMb) return;
    this.kill(`used more than ${memoryMb} MB of memory, and was killed`);
  }

  get #channel(): Socket | null {
    return (this.#child.stdio[3] as Socket | null | undefined) ?? null;
  }

  #listen({ stdout, stderr }: ChildProcess): void {
    const process = this.#number;
    const wants = budgetOf(this.#spec);
    const print = (stream: OutputStream) => ({
      wants,
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

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    this.#over = true;
    const child = this.#child;
    const pid = child.pid ?? 0;
    // What it started and left behind keeps its output open, and goes with it.
    killAll([-pid]);
    sweep(this.#number);
    reaper.forget(pid);
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
    send({ type: 'exit', process: this.#number, exit: { code, why, lost } });
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

const children = new Map<number, HostedChild>();

// The gateway is gone: with us goes the other end of the reaper's pipe, and with that everything we started.
process.on('disconnect', () => process.exit(0));
process.on('message', (message: ToHost) => {
  if (message.type === 'start') return start(message.process, message.spec);
  const child = children.get(message.process);
  if (message.type === 'write') child?.write(message.line);
  else if (message.type === 'end') child?.end();
  else child?.kill(message.why);
});
setInterval(() => {
  for (const child of children.values()) child.checkMemory();
}, MEMORY_CHECK_MS).unref();

function start(number: number, spec: ProcessSpec): void {
  try {
    children.set(number, new HostedChild(number, spec));
  } catch (thrown) {
    const why = `did not start: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
    send({ type: 'exit', process: number, exit: { code: null, why, lost: true } });
  }
}

function send(message: FromHost): void {
  if (message.type === 'exit') children.delete(message.process);
  // The other end may be gone; then so are we in a moment.
  process.send?.(message, undefined, {}, () => undefined);
}

/** One for all processes of an extension. */
function budgetOf({ kind, name }: ProcessSpec): () => boolean {
  const key = `${kind}:${name}`;
  const leftOut = (lines: number): void => send({ type: 'left_out', kind, name, lines });
  const budget = budgets.get(key) ?? lineBudget(processTimers, leftOut);
  budgets.set(key, budget);
  return budget;
}

/** Until a look finds nothing: a process that is killed may have started another meanwhile. */
function sweep(number: number): void {
  ended.add(number);
  if (isSweeping) return;
  isSweeping = true;
  setTimeout(() => {
    isSweeping = false;
    const looked = [...ended];
    const found = findMarked(token, ended);
    killAll(found);
    if (found.length === 0) for (const each of looked) ended.delete(each);
    else sweep(number);
  }, SWEEP_MS);
}

/** A negative number is a group. */
function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It is gone: that is what was wanted.
    }
  }
}
