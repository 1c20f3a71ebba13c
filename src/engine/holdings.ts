import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Holding, Stray } from '../store/transactions/reaping.ts';

/** A session this process holds, at the epoch it got it: what every fenced write has to show. */
export interface Hold {
  readonly sessionId: string;
  readonly epoch: number;
}

/**
 * The sessions this process holds. Only the write that takes a session puts it on the list: a row that names this
 * instance is no proof that the process knows of it, see `strays`.
 */
export class Holdings {
  readonly #instance: string;
  readonly #held = new Map<string, number>();
  /** Those of them in which it runs a turn, with the epoch it began it at. */
  readonly #begun = new Map<string, number>();
  readonly #takings = new Set<Promise<unknown>>();

  constructor(instance: string) {
    this.#instance = instance;
  }

  get all(): readonly Hold[] {
    return [...this.#held].map(([sessionId, epoch]) => ({ sessionId, epoch }));
  }

  /** Notes what a write of this process answered: whether it took the session, and whether it began a turn in it. */
  note(session: Session, taken: boolean, begun = false): void {
    if (session.owner !== this.#instance) this.drop(session.id);
    else if (taken) this.#held.set(session.id, session.epoch);
    if (begun && session.owner === this.#instance) this.#begun.set(session.id, session.epoch);
  }

  /** The turn that ran in a session is over. */
  noteOver(session: Session): void {
    this.#begun.delete(session.id);
    this.note(session, false);
  }

  /** A session was started in the place of another one. */
  noteSuccessor(session: Session, ended: string | null, created = true): void {
    if (ended !== null) this.drop(ended);
    this.note(session, created && session.attached);
  }

  /**
   * The end of a turn was not written: the session was lost to another process or has ended, or only its turn is over.
   * A process that gave up is not taken for the turn's runner any more: then `reconcile` settles the turn.
   */
  noteUnsettled({ sessionId, epoch }: Hold, isLost: boolean): void {
    if (isLost && this.#held.get(sessionId) === epoch) this.drop(sessionId);
    else if (this.#begun.get(sessionId) === epoch) this.#begun.delete(sessionId);
  }

  drop(sessionId: string): void {
    this.#held.delete(sessionId);
    this.#begun.delete(sessionId);
  }

  clear(): void {
    this.#held.clear();
    this.#begun.clear();
  }

  /** Watches a write that may make this instance an owner, so that its session is not taken for a stray. */
  async taking<T>(write: Promise<T>, note: (value: T) => void): Promise<T> {
    const noted = write.then((value) => {
      note(value);
      return value;
    });
    this.#takings.add(noted);
    try {
      return await noted;
    } finally {
      this.#takings.delete(noted);
    }
  }

  /** What the rows say this instance holds and it does not know of, or runs without knowing. */
  async strays(rows: readonly Holding[]): Promise<Stray[]> {
    // A reply that is on its way is not lost: wait for those that were under way when the rows were read.
    await Promise.allSettled(this.#takings);
    return rows
      .filter(({ id, epoch, running }) => (running ? this.#begun.get(id) !== epoch : !this.#held.has(id)))
      .map(({ id, epoch }) => ({ id, epoch, held: this.#held.has(id) }));
  }
}

/** What was held has been there: if it is gone, it was ended first, and then removed. */
export function overRatherThanUnknown({ sessionId }: Hold, thrown: unknown): unknown {
  if (!hasCode(thrown, 'session_not_found')) return thrown;
  return new MoiraiError('session_ended', `session ${sessionId} ended and was removed`, { cause: thrown });
}
