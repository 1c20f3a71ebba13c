import { DatabaseSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { makePrivate } from '../private-file.ts';
import { isBusy } from './errors.ts';

/** How often a busy writer lets the others go first. */
const COURTESY_MS = 10;
const MAX_WAIT_MS = 30_000;
/** Whoever stands in the turnstile for longer is frozen: the others pass it by. */
const TURN_MS = 1000;
const sleepCell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Fair access to one SQLite file for many processes. SQLite itself grants the write lock to whoever asks first after
 * a release, so a saturated writer starves the rest. Here a writer first takes a second lock, the turnstile, waits in
 * it for the write lock, and gives the turnstile back: while somebody stands in it, nobody else gets ahead. The lock
 * is SQLite's own on an empty file, so it vanishes with its process. It is there for fairness alone: a process that is
 * frozen in it, without the write lock, keeps nobody from writing.
 */
export class Turnstile {
  readonly #gate: DatabaseSync;
  readonly #maxWaitMs: number;
  #lastPass = Number.NEGATIVE_INFINITY;
  /** Somebody was frozen in the turnstile: until it is free again, it is not waited for. */
  #passedBy = false;

  constructor(path: string, maxWaitMs = MAX_WAIT_MS) {
    this.#maxWaitMs = maxWaitMs;
    makePrivate(`${path}-turnstile`);
    this.#gate = new DatabaseSync(`${path}-turnstile`);
    // Nothing is ever written: a journal on the disk would be made and removed at every pass.
    this.#gate.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY');
  }

  /** Runs `begin` (a `BEGIN IMMEDIATE`) until it succeeds, in fair order with other processes. */
  enter(begin: () => void): void {
    const now = performance.now();
    // Passing costs a few system calls: a writer that commits all the time pays them once per courtesy.
    if (now - this.#lastPass < COURTESY_MS && attempt(begin)) return;
    const isInTurn = worksWithin(this.#passedBy ? 0 : TURN_MS, () => this.#gate.exec('BEGIN IMMEDIATE'));
    this.#passedBy = !isInTurn;
    try {
      retryWhileBusy(begin, this.#maxWaitMs);
    } finally {
      if (isInTurn) this.#gate.exec('ROLLBACK');
    }
    this.#lastPass = performance.now();
  }

  close(): void {
    this.#gate.close();
  }
}

/** Tries until it works; for opening a store, when there is no turnstile yet. */
export function retryWhileBusy(action: () => void, maxWaitMs = MAX_WAIT_MS): void {
  if (worksWithin(maxWaitMs, action)) return;
  throw new MoiraiError('store_locked', `the database stayed locked for ${maxWaitMs / 1000} s`);
}

function worksWithin(maxWaitMs: number, action: () => void): boolean {
  const deadline = performance.now() + maxWaitMs;
  while (!attempt(action)) {
    if (performance.now() > deadline) return false;
    // Jitter, so that waiting processes do not ask in step.
    Atomics.wait(sleepCell, 0, 0, 0.3 + Math.random());
  }
  return true;
}

function attempt(action: () => void): boolean {
  try {
    action();
    return true;
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw thrown;
  }
}
