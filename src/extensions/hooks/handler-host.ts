import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Logger } from '../../log/logger.ts';
import type { Handler } from './handler.ts';
import type { HandlerFile } from './handler-file.ts';
import type { HandlerFacts, HandlerMessage, Order } from './handler-messages.ts';

interface Remote {
  readonly file: HandlerFile;
  readonly facts: HandlerFacts;
  readonly log: Logger;
  processes: number;
}

type Call = PromiseWithResolvers<void>;

/** The gateway's side of the process that runs the hooks: handlers that are somewhere else. */
export class HandlerHost {
  readonly #remotes = new Map<number, Remote>();
  readonly #calls = new Map<number, Call>();
  #worker: ChildProcess | null = null;
  #next = 1;

  /** A handler whose processes are started over there. Nothing is started before the first event. */
  make(file: HandlerFile, facts: HandlerFacts, log: Logger): Handler {
    const handler = this.#next++;
    const remote: Remote = { file, facts, log, processes: 0 };
    this.#remotes.set(handler, remote);
    this.#worker?.send(makeOrder(handler, remote));
    const end = async (order: 'retire' | 'close'): Promise<void> => {
      if (this.#worker !== null) await this.#call((call) => ({ order, call, handler })).done;
      this.#remotes.delete(handler);
    };
    return {
      run: (event, signal) => this.#run(handler, event, signal),
      get processes() {
        return remote.processes;
      },
      retire: () => end('retire'),
      close: () => end('close'),
    };
  }

  /** Kills what is left over there, and ends it. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    await this.#call((call) => ({ order: 'leave', call })).done;
    this.#worker = null;
    const gone = once(worker, 'exit');
    worker.disconnect();
    await gone;
  }

  async #run(handler: number, event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const { call, done } = this.#call((number) => ({ order: 'run', call: number, handler, event }));
    const abort = (): void => this.#order({ order: 'abort', call });
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      await done;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #call(order: (call: number) => Order): { call: number; done: Promise<void> } {
    const call = this.#next++;
    const waiting: Call = Promise.withResolvers();
    this.#calls.set(call, waiting);
    this.#order(order(call));
    return { call, done: waiting.promise };
  }

  #order(order: Order): void {
    this.#worker ??= this.#start();
    this.#worker.send(order);
  }

  #start(): ChildProcess {
    const file = import.meta.url.endsWith('.ts') ? './handler-worker.ts' : './handler-worker.js';
    const worker = fork(fileURLToPath(new URL(file, import.meta.url)), {
      serialization: 'advanced',
      execArgv: ['--disable-warning=ExperimentalWarning', '--max-old-space-size=256', '--max-semi-space-size=1'],
      // In a session of its own: what is meant for our group or our terminal does not reach it.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    worker.on('message', (word: HandlerMessage) => this.#onMessage(word));
    worker.on('error', (cause) => this.#lost(worker, cause));
    worker.on('exit', () => this.#lost(worker, null));
    lowerPriority(worker);
    // What holds the process open is the gateway, not its hooks.
    worker.unref();
    worker.channel?.unref();
    for (const [handler, remote] of this.#remotes) worker.send(makeOrder(handler, remote));
    return worker;
  }

  #onMessage(word: HandlerMessage): void {
    if (word.word === 'done') this.#done(word);
    else if (word.word === 'processes') this.#count(word.handler, word.count);
    else if (word.word === 'said')
      this.#log(word.handler)?.info('a hook says', { stream: word.stream, line: word.line });
    else this.#log(word.handler)?.warn('a hook writes too much; lines were left out', { lines: word.lines });
  }

  #count(handler: number, count: number): void {
    const remote = this.#remotes.get(handler);
    if (remote !== undefined) remote.processes = count;
  }

  #log(handler: number): Logger | undefined {
    return this.#remotes.get(handler)?.log;
  }

  #done({ call, error }: Extract<HandlerMessage, { word: 'done' }>): void {
    const waiting = this.#calls.get(call);
    this.#calls.delete(call);
    if (error === null) waiting?.resolve();
    else waiting?.reject(new MoiraiError(error.code as ErrorCode, error.message));
  }

  /** It died, which only a defect of ours or a killer does to it: nothing that it had in hand is done. */
  #lost(worker: ChildProcess, cause: Error | null): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const lost = new MoiraiError(
      'subscriber_unavailable',
      'the process of the hooks died',
      cause === null ? {} : { cause },
    );
    for (const waiting of this.#calls.values()) waiting.reject(lost);
    this.#calls.clear();
  }
}

function makeOrder(handler: number, { file, facts }: Remote): Order {
  return { order: 'make', handler, file, facts };
}

const LOW_PRIORITY = 10;

/** People wait for the gateway, and nobody for a hook. */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, LOW_PRIORITY);
  } catch {
    // It is gone already; its exit says it all.
  }
}
