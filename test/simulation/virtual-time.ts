import type { Timers } from '../../src/queue/timers.ts';
import type { StoreClock } from '../../src/store/clock.ts';

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** A world's time: it stands still while code runs and jumps to the next timer when all code waits. */
export class VirtualTime implements StoreClock, Timers {
  #elapsed = 0;
  #order = 0;
  readonly #start: number;
  /** The wall clock may be set; the lease clock may not. */
  wallOffset = 0;
  readonly #heap: Entry[] = [];
  /** Real work under way (a database server's): time waits for it. */
  busy = 0;

  constructor(start: number) {
    this.#start = start;
  }

  now = (): number => this.#start + this.#elapsed + this.wallOffset;
  lease = (): number => this.#elapsed;
  elapsed = (): number => this.#elapsed;

  after = (ms: number, callback: () => void): (() => void) => {
    const entry: Entry = { at: this.#elapsed + Math.max(0, ms), order: this.#order++, run: callback, cancelled: false };
    push(this.#heap, entry);
    return () => {
      entry.cancelled = true;
    };
  };

  sleep(ms: number): Promise<void> {
    return new Promise((done) => this.after(ms, done));
  }

  /** Runs until a moment, or until `done` says so. */
  async runUntil(moment: number, done: () => boolean = () => false): Promise<void> {
    await this.#settle();
    while (!done()) {
      const entry = this.#heap[0];
      if (entry === undefined || entry.at > moment) break;
      pop(this.#heap);
      if (entry.cancelled) continue;
      this.#elapsed = Math.max(this.#elapsed, entry.at);
      entry.run();
      await this.#settle();
    }
    this.#elapsed = Math.max(this.#elapsed, Math.min(moment, this.#heap[0]?.at ?? moment));
  }

  /** Lets all code that can run, run: a macrotask comes after every microtask. */
  async #settle(): Promise<void> {
    do await new Promise((done) => setImmediate(done));
    while (this.busy > 0);
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Entry[], entry: Entry): void {
  heap.push(entry);
  for (let i = heap.length - 1; i > 0; ) {
    const parent = (i - 1) >> 1;
    if (!before(heap[i]!, heap[parent]!)) break;
    [heap[i], heap[parent]] = [heap[parent]!, heap[i]!];
    i = parent;
  }
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (heap.length === 0 || last === undefined) return;
  heap[0] = last;
  for (let i = 0; ; ) {
    let least = i;
    for (const child of [2 * i + 1, 2 * i + 2]) {
      if (child < heap.length && before(heap[child]!, heap[least]!)) least = child;
    }
    if (least === i) return;
    [heap[i], heap[least]] = [heap[least]!, heap[i]!];
    i = least;
  }
}
