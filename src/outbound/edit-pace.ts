import type { Place, Platform } from '../platforms/platform.ts';
import type { Timers } from '../queue/timers.ts';
import { placeId } from './places.ts';

const MAX_PLACES = 10_000;

/**
 * How often messages of one chat are changed, whoever changes them: a reply that grows, and the outbox that puts the
 * whole reply in its place.
 */
export class EditPace {
  readonly #timers: Timers;
  readonly #changedAt = new Map<string, number>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** A message there was sent or changed just now. */
  changed(platform: Platform, place: Place): void {
    if (this.#changedAt.size >= MAX_PLACES) this.#changedAt.clear();
    this.#changedAt.set(keyOf(platform, place), this.#timers.elapsed());
  }

  /** Resolves when the next change there is not too soon. */
  async turn(platform: Platform, place: Place): Promise<void> {
    const last = this.#changedAt.get(keyOf(platform, place));
    const left = last === undefined ? 0 : last + platform.abilities.editEveryMs - this.#timers.elapsed();
    if (left > 0) await new Promise<void>((resume) => this.#timers.after(left, resume));
  }
}

function keyOf({ name }: Platform, place: Place): string {
  return `${name}:${placeId(place)}`;
}
