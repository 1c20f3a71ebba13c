import { KeptCursor } from '../cursor.ts';
import { fieldsOf, integerOf, textOf } from '../fields.ts';
import { LowWater } from '../low-water.ts';
import type { PlatformRuntime } from '../platform.ts';
import type { Self } from './parse.ts';

/** A place in what the server sends: everything behind it is asked for. */
export interface Position {
  readonly session: string;
  readonly seq: number;
  readonly self: Self;
}

const KEY = 'gateway';

/**
 * Up to where the inbox has what came over the socket. The server numbers what it sends and sends it again from any number
 * of a session that it still knows; no number is given to it, or kept for the next process, before the inbox has
 * everything below.
 */
export class ResumeState {
  readonly #cursor: KeptCursor;
  readonly #lowWater = new LowWater<Position>();
  /** What is being handed over, by its number in its session; the value names it. */
  readonly #open = new Map<string, string>();
  /** Where the session begins for us: as it was kept, or as it was made. */
  #base: Position | null = null;

  constructor(runtime: PlatformRuntime) {
    this.#cursor = new KeptCursor(runtime, KEY);
  }

  /** As the last process left it. */
  async read(): Promise<void> {
    this.#base ??= positionOf(await this.#cursor.read());
  }

  /** Where to go on; null where a new session has to be made. */
  get position(): Position | null {
    const { mark } = this.#lowWater;
    return mark !== null && mark.session === this.#base?.session ? mark : this.#base;
  }

  /**
   * The server has made a session. What is still open of the one before is not forgotten by us, and cannot be asked for
   * any more; the new one is kept at once, so that a process that is killed now loses nothing of it.
   */
  begun(position: Position): void {
    this.#base = position;
    this.#lowWater.begin(position)();
    this.#keep();
    void this.#cursor.flush();
  }

  /** The server does not know the session any more. */
  forget(): void {
    this.#base = null;
  }

  /**
   * Something came, by its number and a name of its own. The returned function tells that the inbox has it; null for what
   * is still being handed over, and came again because the connection did.
   */
  take(seq: number, name: string): (() => void) | null {
    const { session, self } = this.#base ?? { session: '', self: { id: '' } };
    const id = `${session}:${seq}`;
    if (this.#open.get(id) === name) return null;
    this.#open.set(id, name);
    const done = this.#lowWater.begin({ session, seq, self });
    return () => {
      if (this.#open.get(id) === name) this.#open.delete(id);
      if (done()) this.#keep();
    };
  }

  async flush(): Promise<void> {
    await this.#cursor.flush();
  }

  #keep(): void {
    const { position } = this;
    if (position !== null && position.session !== '') this.#cursor.moveTo(JSON.stringify(position));
  }
}

function positionOf(kept: string | null): Position | null {
  if (kept === null) return null;
  try {
    const fields = fieldsOf(JSON.parse(kept));
    const session = textOf(fields?.session);
    const seq = integerOf(fields?.seq);
    const self = textOf(fieldsOf(fields?.self)?.id);
    return session && seq !== null && self !== null ? { session, seq, self: { id: self } } : null;
  } catch {
    return null;
  }
}
