import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import type { ReadName } from '../catalogue.ts';
import { machineClock } from '../clock.ts';
import { FileSignal } from './file-signal.ts';
import { SqliteReader } from './reader.ts';
import type { Outcome } from './writer.ts';

/** A few rows by their key or from the end of an index, most of them written a moment ago and so in memory. */
const BY_KEY: ReadonlySet<ReadName> = new Set<ReadName>([
  ...(['getSession', 'openSession', 'getTurn', 'turnResult', 'turnByRef', 'openTurns', 'answeredTurns'] as const),
  ...(['findSetting', 'isPaired', 'findPlace', 'findJob', 'storeTime', 'nextDeadline', 'lastSeq'] as const),
  ...(['listInstances', 'listSubscribers', 'turnFiles', 'movesOf', 'turnReply', 'liveReplyOf'] as const),
  ...(['countHeld', 'platformState'] as const),
]);

/** Pages, and how long they may be. */
const PAGES: Readonly<Partial<Record<ReadName, number>>> = {
  unfinishedTurns: 500,
  listEvents: 200,
  listMessages: 50,
  staleTurns: 200,
  abandonedApprovals: 100,
  abandonedLiveReplies: 100,
};

/**
 * Reads that take longer are none of this kind: for a while another thread does them. Once may be the machine, which had
 * something else to do.
 */
const SLOW_MS = 20;
const SLOW_IN_A_ROW = 2;
const SLOW_FOR_MS = 60_000;

/**
 * Answers short reads on the caller's own thread: to ask another one and be woken by it costs more than the answer.
 * Whatever may have to wait for the disk goes to the reader's thread, so that it does not stop a gateway.
 */
export class NearReads {
  readonly #path: string;
  readonly #elapsed: () => number;
  readonly #slowInARow = new Map<ReadName, number>();
  /** Until when a kind of read is left to the other thread. */
  readonly #slowUntil = new Map<ReadName, number>();
  #rules: ResetRules;
  readonly #signal: FileSignal;
  #reader: SqliteReader | null = null;

  constructor(
    path: string,
    rules: ResetRules,
    elapsed: () => number = () => performance.now(),
    signal = new FileSignal(),
  ) {
    this.#path = path;
    this.#rules = rules;
    this.#elapsed = elapsed;
    this.#signal = signal;
  }

  set rules(rules: ResetRules) {
    this.#rules = rules;
    if (this.#reader !== null) this.#reader.rules = rules;
  }

  /** What the store says; null for what the reader's thread has to be asked for. */
  read(name: ReadName, args: unknown): Outcome | null {
    if (!this.#isNear(name, args)) return null;
    // It never waits for a lock: that is for the other thread.
    this.#reader ??= new SqliteReader(this.#path, machineClock, this.#rules, {
      waitMs: 0,
      signal: this.#signal,
    });
    const began = this.#elapsed();
    const [outcome] = this.#reader.runBatch([{ name, args }]);
    this.#judge(name, this.#elapsed() - began);
    return outcome === undefined || (!outcome.ok && outcome.error.code === 'store_locked') ? null : outcome;
  }

  close(): void {
    this.#reader?.close();
    this.#reader = null;
  }

  #judge(name: ReadName, tookMs: number): void {
    if (tookMs <= SLOW_MS) {
      this.#slowInARow.delete(name);
      return;
    }
    const slow = (this.#slowInARow.get(name) ?? 0) + 1;
    this.#slowInARow.set(name, slow);
    if (slow >= SLOW_IN_A_ROW) this.#slowUntil.set(name, this.#elapsed() + SLOW_FOR_MS);
  }

  #isNear(name: ReadName, args: unknown): boolean {
    const slowUntil = this.#slowUntil.get(name);
    if (slowUntil !== undefined && this.#elapsed() < slowUntil) return false;
    if (BY_KEY.has(name)) return true;
    const most = PAGES[name];
    return most !== undefined && (args as { readonly limit: number }).limit <= most;
  }
}
