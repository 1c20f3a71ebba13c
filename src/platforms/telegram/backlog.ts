import { fieldsOf, integerOf } from '../fields.ts';
import type { Parsed } from './parse.ts';
import { laneOf } from './reception.ts';

interface Numbered {
  readonly id: number;
  readonly parsed: Parsed | null;
}

interface BacklogOptions {
  readonly parse: (update: unknown) => Parsed | null;
  /** Rejects when the update has to be brought again. */
  readonly take: (parsed: Parsed) => Promise<void>;
}

/**
 * What the server still keeps for us. It forgets every update below the offset it is asked with, so the offset passes an
 * update only when that one and all before it are taken.
 */
export class Backlog {
  readonly #options: BacklogOptions;
  /** Accepted, but behind one that is not: they come again and are not handed over again. */
  readonly #ahead = new Set<number>();
  #offset: number | null = null;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** What to ask the server with; null when it has been told of everything. */
  get offset(): number | null {
    return this.#offset;
  }

  /**
   * The server has been told. Numbers may start anywhere again after a quiet week, even below the last one, so a number
   * that has done its work is not asked with again.
   */
  confirmed(offset: number | null): void {
    if (this.#offset === offset) this.#offset = null;
  }

  /** Takes a batch, chats beside each other; returns whether all of it is taken. */
  async take(updates: readonly unknown[], signal: AbortSignal): Promise<boolean> {
    // Nothing waits at the server, so nothing of this can come again; its number may, for another one.
    if (updates.length === 0) this.#ahead.clear();
    const numbered = updates.flatMap((update): Numbered[] => {
      const id = integerOf(fieldsOf(update)?.update_id);
      return id === null ? [] : [{ id, parsed: this.#options.parse(update) }];
    });
    const batch = numbered.toSorted((a, b) => a.id - b.id);
    const lanes = Map.groupBy(batch, ({ id, parsed }) => (parsed === null ? `skipped:${id}` : laneOf(parsed)));
    await Promise.all([...lanes.values()].map((lane) => this.#takeLane(lane, signal)));
    const untaken = batch.find(({ id }) => !this.#ahead.has(id));
    const last = batch.at(-1);
    if (last !== undefined) this.#moveTo(untaken?.id ?? last.id + 1);
    return untaken === undefined && batch.length === updates.length;
  }

  async #takeLane(lane: readonly Numbered[], signal: AbortSignal): Promise<void> {
    for (const { id, parsed } of lane) {
      if (this.#ahead.has(id)) continue;
      if (signal.aborted) return;
      try {
        if (parsed !== null) await this.#options.take(parsed);
      } catch {
        // The rest of the chat waits for it. Who took it has said why it was not taken.
        return;
      }
      this.#ahead.add(id);
    }
  }

  #moveTo(offset: number): void {
    this.#offset = offset;
    for (const id of this.#ahead) if (id < offset) this.#ahead.delete(id);
  }
}
