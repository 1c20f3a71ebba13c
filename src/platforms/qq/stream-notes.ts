import { fieldsOf, integerOf, listOf, nameOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';

/** What the next process has to know of a reply that grows. */
export interface StreamNote {
  /** As the server calls it. */
  readonly id: string;
  /** When it began, epoch milliseconds. */
  readonly since: number;
  readonly isDone: boolean;
}

const KEY = 'streams';
const REMEMBERED = 50;

/** The replies that grew last, kept as one text: what was ended is not ended twice, and what was begun can be ended. */
export class StreamNotes {
  readonly #runtime: PlatformRuntime;
  readonly #notes = new Recent<StreamNote>(REMEMBERED);
  #reading: Promise<void> | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
  }

  now(): number {
    return this.#runtime.now();
  }

  async get(name: string): Promise<StreamNote | null> {
    this.#reading ??= this.#read();
    await this.#reading;
    return this.#notes.get(name) ?? null;
  }

  /** Resolves when it is durable. */
  async set(name: string, note: StreamNote): Promise<void> {
    await this.get(name);
    this.#notes.set(name, note);
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => this.#runtime.keep(KEY, JSON.stringify(this.#notes.entries())));
    await this.#writing;
  }

  async #read(): Promise<void> {
    try {
      const kept: unknown = JSON.parse((await this.#runtime.recall(KEY)) ?? '[]');
      for (const each of listOf(kept)) this.#readNote(listOf(each));
    } catch (thrown) {
      this.#runtime.warn('the replies that were growing are not known', { error: String(thrown) });
    }
  }

  #readNote([name, kept]: readonly unknown[]): void {
    const note = fieldsOf(kept);
    const [id, since] = [nameOf(note?.id), integerOf(note?.since)];
    if (typeof name !== 'string' || note === null || id === null || since === null) return;
    this.#notes.set(name, { id, since, isDone: note.isDone === true });
  }
}
