import { DatabaseSync } from 'node:sqlite';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { makePrivate } from '../private-file.ts';
import { isBusy } from './errors.ts';

/** How often a busy writer lets the others go first. */
const COURTESY_MS = 10;
const MAX_WAIT_MS = 30_000;
const sleepCell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Fair access to one SQLite file for many processes. SQLite itself grants the write lock to whoever asks first after
 * a release, so a saturated writer starves the rest. Here a writer first takes a second lock, the turnstile, waits in
 * it for the write lock, and gives the turnstile back: while somebody stands in it, nobody else gets ahead. The lock
 * is SQLite's own on an empty file, so it vanishes with its process.
 */
export class Turnstile {
  readonly #gate: DatabaseSync;
  readonly #maxWaitMs: number;
  #lastPass = Number.NEGATIVE_INFINITY;

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
    retryWhileBusy(() => this.#gate.exec('BEGIN IMMEDIATE'), this.#maxWaitMs);
    try {
      retryWhileBusy(begin, this.#maxWaitMs);
    } finally {
      this.#gate.exec('ROLLBACK');
    }
    this.#lastPass = performance.now();
  }

  close(): void {
    this.#gate.close();
  }
}

/** Tries until it works; for opening a store, when there is no turnstile yet. */
export function retryWhileBusy(action: () => void, maxWaitMs = MAX_WAIT_MS): void {
  const deadline = performance.now() + maxWaitMs;
  while (!attempt(action)) {
    if (performance.now() > deadline) {
      throw new MoiraiError('store_locked', `the database stayed locked for ${maxWaitMs / 1000} s`);
    }
    // Jitter, so that waiting processes do not ask in step.
    Atomics.wait(sleepCell, 0, 0, 0.3 + Math.random());
  }
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
