import { sanitize } from '../platforms/outside-text.ts';
import type { Place } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import type { KnownPlace } from './place-store.ts';

/** How people and the store call a place: `chat` or `chat:thread`. */
export function placeId({ chat, thread }: Pick<Place, 'chat' | 'thread'>): string {
  return thread === undefined ? chat : `${chat}:${thread}`;
}

const MAX_REMEMBERED = 10_000;
const MOST_LISTED = 2000;

/** The directory of places that people talk in, so that they can be named later. */
export class Places {
  readonly #store: Store;
  /** Written down already, under this name: a message need not write it again. */
  readonly #known = new Map<string, string>();
  readonly #listed = new Map<string, string>();

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

  /** The platform says that these are there. */
  async listed(platform: string, places: readonly Place[]): Promise<void> {
    for (const place of places.slice(0, MOST_LISTED)) {
      const name = place.name === undefined ? null : sanitize(place.name);
      const key = `${platform}:${placeId(place)}`;
      if (this.#listed.get(key) === (name ?? '')) continue;
      const kept = { ...place, ...(name === null ? {} : { name }) };
      await this.#store.write('listPlace', { platform, id: placeId(place), place: kept, name });
      if (this.#listed.size >= MAX_REMEMBERED) this.#listed.clear();
      this.#listed.set(key, name ?? '');
    }
  }

  /** Whether somebody who may talk to the agent has talked there, or the platform has said that it is there. */
  async isKnown(platform: string, place: Place): Promise<boolean> {
    const key = `${platform}:${placeId(place)}`;
    if (this.#known.has(key) || this.#listed.has(key)) return true;
    return (await this.#store.read('findPlace', { platform, id: placeId(place) })) !== null;
  }

  /** A chat goes on under another id. */
  async moved(platform: string, from: string, to: string): Promise<void> {
    await this.#store.write('moveChat', { platform, from, to });
    await this.gone(platform, { chat: from }, `it has become ${to}`);
  }

  /**
   * The place under the id that its conversations began with: their keys do not change when a chat moves. The store is
   * asked each time, since another process may have learned of the move.
   */
  async known<P extends Pick<Place, 'type' | 'chat'>>(platform: string, place: P): Promise<P> {
    const moves = await this.#movesOf(platform, place);
    const chat = moves.find((move) => move.chat === place.chat)?.knownAs;
    return chat === undefined ? place : { ...place, chat };
  }

  /** Everything that a chat is or was called. */
  async idsOf(platform: string, place: Pick<Place, 'type' | 'chat'>): Promise<string[]> {
    const moves = await this.#movesOf(platform, place);
    return [...new Set([place.chat, ...moves.flatMap(({ chat, knownAs }) => [chat, knownAs])])];
  }

  /** Direct chats never move. */
  async #movesOf(platform: string, { type, chat }: Pick<Place, 'type' | 'chat'>) {
    return type === 'dm' ? [] : this.#store.read('movesOf', { platform, chat });
  }

  /** Nothing can be sent there any more; when somebody talks there again, it is written down anew. */
  async gone(platform: string, place: Pick<Place, 'chat' | 'thread'>, because: string): Promise<void> {
    const id = placeId(place);
    this.#known.delete(`${platform}:${id}`);
    this.#listed.delete(`${platform}:${id}`);
    await this.#store.write('markPlace', { platform, id, because: sanitize(because, 200) });
  }

  list(platform: string | null): Promise<KnownPlace[]> {
    return this.#store.read('listPlaces', { platform });
  }
}
