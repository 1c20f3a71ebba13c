import { sanitize } from '../platforms/outside-text.ts';
import type { Place } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import type { KnownPlace } from './place-store.ts';

/** How people and the store call a place: `chat` or `chat:thread`. */
export function placeId({ chat, thread }: Pick<Place, 'chat' | 'thread'>): string {
  return thread === undefined ? chat : `${chat}:${thread}`;
}

const MAX_REMEMBERED = 10_000;

/** The directory of places that people talk in, so that they can be named later. */
export class Places {
  readonly #store: Store;
  /** Written down already, under this name: a message need not write it again. */
  readonly #known = new Map<string, string>();

  constructor(store: Store) {
    this.#store = store;
  }

  async seen(platform: string, place: Place): Promise<void> {
    const id = placeId(place);
    const name = place.name === undefined ? null : sanitize(place.name);
    const known = this.#known.get(`${platform}:${id}`);
    if (known === (name ?? '')) return;
    await this.#store.write('seePlace', {
      platform,
      id,
      place: { ...place, ...(name === null ? {} : { name }) },
      name,
    });
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(`${platform}:${id}`, name ?? '');
  }

  /** Nothing can be sent there any more; when somebody talks there again, it is written down anew. */
  async gone(platform: string, place: Pick<Place, 'chat' | 'thread'>, because: string): Promise<void> {
    const id = placeId(place);
    this.#known.delete(`${platform}:${id}`);
    await this.#store.write('markPlace', { platform, id, because: sanitize(because, 200) });
  }

  list(platform: string | null): Promise<KnownPlace[]> {
    return this.#store.read('listPlaces', { platform });
  }
}
