import { isSameSpeaker, type Turn } from '../lifecycle/session.ts';
import type { Timers } from '../queue/timers.ts';

/** Nobody waits longer than this for the last piece. */
const LONGEST_MS = 6000;

interface Settling {
  readonly since: number;
  readonly turns: Set<string>;
  cancel: () => void;
}

/**
 * Messages that may be pieces of one: each is durable as a turn that waits, and for a short while nothing begins in its
 * session, so that the others can join it. After a crash they are what they are in the store: messages one by one.
 */
export class Pieces {
  readonly #timers: Timers;
  readonly #settled: (sessionId: string) => void;
  readonly #open = new Map<string, Settling>();
  readonly #closed = new Map<string, ReadonlySet<string>>();

  constructor(timers: Timers, settled: (sessionId: string) => void) {
    this.#timers = timers;
    this.#settled = settled;
  }

  /** A message came; another may follow for so long. */
  add(sessionId: string, turnId: string, ms: number): void {
    const now = this.#timers.elapsed();
    const settling = this.#open.get(sessionId) ?? { since: now, turns: new Set(), cancel: () => undefined };
    settling.cancel();
    settling.turns.add(turnId);
    const left = Math.max(0, settling.since + LONGEST_MS - now);
    settling.cancel = this.#timers.after(Math.min(ms, left), () => this.#close(sessionId));
    this.#open.set(sessionId, settling);
  }

  /** More may come: nothing begins yet. */
  isOpen(sessionId: string): boolean {
    return this.#open.has(sessionId);
  }

  /** The pieces right behind a message, of the same person; they are told once. */
  takeBehind(sessionId: string, first: Turn, behind: readonly Turn[]): string[] {
    const known = this.#closed.get(sessionId);
    this.#closed.delete(sessionId);
    if (known === undefined || !known.has(first.id)) return [];
    const end = behind.findIndex((turn) => !known.has(turn.id) || !isSameSpeaker(turn, first));
    return (end === -1 ? behind : behind.slice(0, end)).map(({ id }) => id);
  }

  #close(sessionId: string): void {
    const settling = this.#open.get(sessionId);
    if (settling === undefined) return;
    this.#open.delete(sessionId);
    this.#closed.set(sessionId, settling.turns);
    this.#settled(sessionId);
  }
}
