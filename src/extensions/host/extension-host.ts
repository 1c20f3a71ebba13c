import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../log/logger.ts';
import { processTimers, type Timers } from '../../queue/timers.ts';
import {
  type FromHost,
  LOG_ENTRY,
  type OutputStream,
  type ProcessExit,
  type ProcessSpec,
  type ToHost,
} from './protocol.ts';

/** Where the words of a process go, line by line. */
export type LineSink = (stream: OutputStream, line: string) => void;

/** A process of an extension, wherever it is. */
export interface HostedProcess {
  write(line: string): void;
  /** Nothing more will be written: it may leave. */
  end(): void;
  kill(why: string): void;
  /** Resolves when it is gone and what it said was read. Never rejects. */
  readonly gone: Promise<ProcessExit>;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly giveUp?: (why: 'late' | 'called off') => void;
}

interface Hosted {
  readonly spec: ProcessSpec;
  readonly onLine: (line: string) => void;
  readonly onPrint: LineSink | undefined;
  readonly exit: (exit: ProcessExit) => void;
}

const LONGEST_LINE = 2000;
/** Less than what it starts, and more than nothing: plugins are answered through it. */
const NICENESS = 2;
const DIED: ProcessExit = { code: null, why: 'lost the process that hosts it', lost: true };

/** The gateway's side of the host process, in which every process of hooks and plugins is started. */
export class ExtensionHost {
  /** For everything that is done with its processes. */
  readonly timers: Timers;
  readonly #log: Logger;
  readonly #processes = new Map<number, Hosted>();
  #worker: ChildProcess | null = null;
  #next = 1;
  #waits = 0;

  constructor(log: Logger, timers: Timers = processTimers) {
    this.#log = log;
    this.timers = timers;
  }

  /** Starts a process; one that does not start is gone at once. `onLine` takes what it writes to its channel. */
  start(spec: ProcessSpec, onLine: (line: string) => void = () => undefined, onPrint?: LineSink): HostedProcess {
    const process = this.#next++;
    const { promise: gone, resolve: exit } = Promise.withResolvers<ProcessExit>();
    this.#worker ??= this.#startWorker();
    this.#processes.set(process, { spec, onLine, onPrint, exit });
    this.#send({ type: 'start', process, spec });
    return {
      write: (line) => this.#send({ type: 'write', process, line }),
      end: () => this.#send({ type: 'end', process }),
      kill: (why) => this.#send({ type: 'kill', process, why }),
      gone,
    };
  }

  /**
   * Waits for an extension, and keeps this process from ending meanwhile. Calls `giveUp` when the time is up and when the
   * signal is aborted; that has to settle the promise.
   */
  async wait<T>(promise: Promise<T>, { timeoutMs, signal, giveUp = () => undefined }: WaitOptions = {}): Promise<T> {
    const callOff = (): void => giveUp('called off');
    const cancel = timeoutMs === undefined ? undefined : this.timers.after(timeoutMs, () => giveUp('late'));
    signal?.addEventListener('abort', callOff, { once: true });
    if (signal?.aborted) callOff();
    if (this.#waits++ === 0) this.#worker?.channel?.ref();
    try {
      return await promise;
    } finally {
      if (--this.#waits === 0) this.#worker?.channel?.unref();
      signal?.removeEventListener('abort', callOff);
      cancel?.();
    }
  }

  /** Ends the host process; whatever still runs in it is killed. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const gone = new Promise((resolve) => worker.once('exit', resolve));
    worker.ref();
    if (worker.connected) worker.disconnect();
    await gone;
  }

  #send(message: ToHost): void {
    // One that died meanwhile says so by its exit.
    if (this.#worker?.connected) this.#worker.send(message, undefined, {}, () => undefined);
  }

  #startWorker(): ChildProcess {
    const file = import.meta.url.endsWith('.ts') ? './host-worker.ts' : './host-worker.js';
    const worker = fork(fileURLToPath(new URL(file, import.meta.url)), {
      serialization: 'advanced',
      execArgv: ['--disable-warning=ExperimentalWarning', '--max-old-space-size=256', '--max-semi-space-size=1'],
      // In a session of its own: what is meant for our group or our terminal does not reach it.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    worker.on('message', (message: FromHost) => this.#onMessage(message));
    worker.on('error', (error) => this.#lost(worker, error.message));
    worker.on('exit', (code, signal) => this.#lost(worker, signal ?? `exit code ${code}`));
    try {
      setPriority(worker.pid ?? 0, NICENESS);
    } catch {
      // It is gone already; its exit says it all.
    }
    // What holds the process open is the gateway, not its extensions.
    worker.unref();
    if (this.#waits === 0) worker.channel?.unref();
    return worker;
  }

  #onMessage(message: FromHost): void {
    if (message.type === 'left_out') {
      const { kind, name, lines } = message;
      this.#log.warn(`a ${kind} writes too much; lines were left out`, { [kind]: name, lines });
      return;
    }
    const hosted = this.#processes.get(message.process);
    if (message.type === 'line') hosted?.onLine(message.line);
    else if (message.type === 'printed') this.#print(hosted, message.stream, message.line);
    else this.#exited(message.process, message.exit);
  }

  #print(hosted: Hosted | undefined, stream: OutputStream, line: string): void {
    if (hosted === undefined) return;
    const { kind, name } = hosted.spec;
    const entry = line.startsWith(LOG_ENTRY) ? logEntryIn(line.slice(LOG_ENTRY.length)) : null;
    const cut = line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
    if (entry !== null) {
      this.#log[entry.level](entry.message, { [kind]: name, ...entry.fields });
      return;
    }
    hosted.onPrint?.(stream, cut);
    this.#log.info(`a ${kind} says`, { [kind]: name, stream, line: cut });
  }

  #exited(process: number, exit: ProcessExit): void {
    const hosted = this.#processes.get(process);
    this.#processes.delete(process);
    hosted?.exit(exit);
  }

  /** Its reaper kills what it had started; the next process is started in another host process. */
  #lost(worker: ChildProcess, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    if (this.#processes.size > 0) this.#log.error('the host process of hooks and plugins ended', { why });
    for (const process of [...this.#processes.keys()]) this.#exited(process, DIED);
  }
}

type Level = 'debug' | 'info' | 'warn' | 'error';
const LEVELS: readonly unknown[] = ['debug', 'info', 'warn', 'error'] satisfies Level[];

/** Null for what is no entry: an extension can write anything. */
function logEntryIn(text: string): { level: Level; message: string; fields: object } | null {
  try {
    const { level, message, fields } = JSON.parse(text) as { level: Level; message: unknown; fields: unknown };
    if (!LEVELS.includes(level) || typeof fields !== 'object') return null;
    return { level, message: String(message), fields: fields ?? {} };
  } catch {
    return null;
  }
}
