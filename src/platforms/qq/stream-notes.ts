import { fieldsOf, integerOf, nameOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { KeptEntries } from './kept-entries.ts';

/** What the next process has to know of a reply that grows. */
export interface StreamNote {
  /** As the server calls it. */
  readonly id: string;
  /** When it began, epoch milliseconds. */
  readonly since: number;
  /** Its end is on its way, or was when its answer was lost. */
  readonly isEnding: boolean;
  readonly isDone: boolean;
}

const KEY = 'streams';

/** The replies that grew last: what was ended is not ended twice, and what was begun can be ended. */
export class StreamNotes {
  readonly #runtime: PlatformRuntime;
  readonly #notes: KeptEntries<StreamNote>;

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
    this.#notes = new KeptEntries({ runtime, key: KEY, read: readNote });
  }

  now(): number {
    return this.#runtime.now();
  }

  get(name: string): Promise<StreamNote | null> {
    return this.#notes.get(name);
  }

  /** Resolves when it is durable. */
  set(name: string, note: StreamNote): Promise<void> {
    return this.#notes.set(name, note);
  }
}

function readNote(kept: unknown): StreamNote | null {
  const note = fieldsOf(kept);
  const [id, since] = [nameOf(note?.id), integerOf(note?.since)];
  if (note === null || id === null || since === null) return null;
  return { id, since, isEnding: note.isEnding === true, isDone: note.isDone === true };
}
