import type { SentMessage } from '../platforms/platform.ts';
import { Recent } from '../platforms/recent.ts';

/** More than are ever on their way at once. */
const MOST = 10_000;

interface Arrived {
  readonly count: number;
  /** The last of them. */
  readonly last: SentMessage;
  /** What the first of them opened, where it opened something: the others belong there. */
  readonly place: SentMessage['place'];
}

/** What has arrived of something that becomes several messages: when the rest is tried again, it is not sent again. */
export class SentParts {
  readonly #arrived = new Recent<Arrived>(MOST);

  of(key: string): Arrived | undefined {
    return this.#arrived.get(key);
  }

  note(key: string, last: SentMessage): void {
    const before = this.#arrived.get(key);
    this.#arrived.set(key, { count: (before?.count ?? 0) + 1, last, place: before?.place ?? last.place });
  }

  forget(key: string): void {
    this.#arrived.delete(key);
  }
}
