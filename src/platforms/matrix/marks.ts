import { KeptCursor } from '../cursor.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';
import { eventIdOf } from './ids.ts';

/** The last event of a room that the inbox has, and when that was. */
export interface Mark {
  readonly event: string;
  readonly at: number;
}

const MOST = 2000;

/** How far each room is taken: where a position is forgotten by the server, what is missing is found by these. */
export class Marks {
  readonly #runtime: PlatformRuntime;
  readonly #cursors: Recent<KeptCursor>;

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
    this.#cursors = new Recent(MOST, (cursor) => void cursor.flush());
  }

  async read(room: string): Promise<Mark | null> {
    const [, at = '', event = ''] = /^(\d{1,15}) (\S+)$/.exec((await this.#cursorOf(room).read()) ?? '') ?? [];
    return eventIdOf(event) === null ? null : { event, at: Number(at) };
  }

  /** The inbox has everything of the room up to this event. */
  moveTo(room: string, event: string): void {
    this.#cursorOf(room).moveTo(`${this.#runtime.now()} ${event}`);
  }

  async flush(): Promise<void> {
    await Promise.all([...this.#cursors.values()].map((cursor) => cursor.flush()));
  }

  #cursorOf(room: string): KeptCursor {
    const known = this.#cursors.get(room);
    if (known !== undefined) return known;
    const cursor = new KeptCursor(this.#runtime, `mark:${room}`);
    this.#cursors.set(room, cursor);
    return cursor;
  }
}
