import { flushCompileCache } from 'node:module';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { type ErrorData, MoiraiError } from '../../errors/moirai-error.ts';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import { machineClock } from '../clock.ts';
import type { Effects } from '../transaction.ts';
import { FileSignal } from './file-signal.ts';
import { SqliteReader } from './reader.ts';
import { type Outcome, SqliteWriter } from './writer.ts';

/** What a worker is told when it starts. */
export interface WorkerTask {
  readonly role: 'writer' | 'reader';
  readonly path: string;
  readonly rules: ResetRules;
  /** Shared with the other threads of the store. */
  readonly signal: Int32Array<SharedArrayBuffer>;
  /** Rung for each message: a count that the worker sleeps on. */
  readonly wakeCounter: Int32Array<SharedArrayBuffer>;
}

export type ToWorker =
  | { readonly type: 'request'; readonly id: number; readonly name: string; readonly args: unknown }
  | { readonly type: 'rules'; readonly rules: ResetRules }
  | { readonly type: 'close' };

export type Answer =
  | { readonly id: number; readonly ok: true; readonly value: unknown; readonly effects: SentEffects | null }
  | { readonly id: number; readonly ok: false; readonly error: ErrorData };

type SentEffects = Omit<Effects, 'queues'> & { readonly queues: readonly string[] };

/** Messages travel as JSON: for objects of this size that is faster than the structured clone. */
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly error: ErrorData }
  | { readonly type: 'answers'; readonly answers: readonly Answer[] };

/** Bounds how long a batch holds the write lock, and so how long other processes wait. */
const MAX_BATCH = 128;

type Engine = SqliteWriter | SqliteReader;

/**
 * Serves until it is told to close. It sleeps on the bell rather than in the event loop, which takes twice as long to
 * wake up; nothing else happens in this thread.
 */
function serve(port: MessagePort, task: WorkerTask): void {
  const engine = open(port, task);
  if (engine === null) return;
  for (;;) {
    const rung = Atomics.load(task.wakeCounter, 0);
    const { requests, close } = takeMessages(port, engine);
    if (requests.length > 0) answer(port, engine, requests);
    else if (!close) Atomics.wait(task.wakeCounter, 0, rung);
    if (close) break;
  }
  engine.close();
  port.close();
}

type WorkerRequest = Extract<ToWorker, { type: 'request' }>;

/** Whatever has arrived by now joins the same commit. */
function takeMessages(port: MessagePort, engine: Engine): { requests: WorkerRequest[]; close: boolean } {
  const requests: WorkerRequest[] = [];
  while (requests.length < MAX_BATCH) {
    const text = receiveMessageOnPort(port)?.message as string | undefined;
    if (text === undefined) break;
    const message = JSON.parse(text) as ToWorker;
    if (message.type === 'close') return { requests, close: true };
    if (message.type === 'rules') engine.rules = message.rules;
    else requests.push(message);
  }
  return { requests, close: false };
}

function open(port: MessagePort, task: WorkerTask): Engine | null {
  try {
    const signal = new FileSignal(task.signal);
    const engine =
      task.role === 'writer'
        ? new SqliteWriter(task.path, machineClock, task.rules, signal)
        : new SqliteReader(task.path, machineClock, task.rules, { signal });
    send(port, { type: 'ready' });
    // What this thread compiled is there for the next one, also when the process is killed.
    flushCompileCache();
    return engine;
  } catch (thrown) {
    send(port, { type: 'failed', error: MoiraiError.wrap(thrown).toJSON() });
    port.close();
    return null;
  }
}

function answer(port: MessagePort, engine: Engine, requests: readonly WorkerRequest[]): void {
  const outcomes = engine.runBatch(requests);
  const answers = requests.map(({ id }, i) => toAnswer(id, outcomes[i]));
  try {
    send(port, { type: 'answers', answers });
  } catch {
    // Together they are longer than any text can be. Alone, most are not.
    for (const one of answers) sendAlone(port, one);
  }
}

function sendAlone(port: MessagePort, one: Answer): void {
  try {
    send(port, { type: 'answers', answers: [one] });
  } catch (thrown) {
    const error = new MoiraiError('store_thread_died', 'the answer is too large to be handed over', { cause: thrown });
    send(port, { type: 'answers', answers: [{ id: one.id, ok: false, error: error.toJSON() }] });
  }
}

function toAnswer(id: number, outcome: Outcome | undefined): Answer {
  if (outcome === undefined) throw new MoiraiError('internal', 'a request was left without an outcome');
  if (!outcome.ok) return { id, ok: false, error: outcome.error.toJSON() };
  const { queues, nextDeadline } = outcome.effects;
  const matters = queues.size > 0 || nextDeadline !== null;
  const effects = matters ? { queues: [...queues], nextDeadline } : null;
  return { id, ok: true, value: outcome.value, effects };
}

function send(port: MessagePort, message: FromWorker): void {
  port.postMessage(JSON.stringify(message));
}

if (parentPort !== null) serve(parentPort, workerData as WorkerTask);
