/** Numbered places of which a person keeps one; the lowest free place is given away first. */
export class Seats<T> {
  readonly taken: (T | undefined)[] = [];
  #lowestFree = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  take(who: T): number {
    let seat = this.#lowestFree;
    while (this.taken[seat] !== undefined) seat++;
    this.taken[seat] = who;
    this.#lowestFree = seat + 1;
    this.#count++;
    return seat;
  }

  release(seat: number): void {
    if (this.taken[seat] === undefined) return;
    this.taken[seat] = undefined;
    this.#lowestFree = Math.min(this.#lowestFree, seat);
    this.#count--;
    // Free seats behind the last actor go, so that a room that was full once becomes short again.
    while (this.taken.length > 0 && this.taken[this.taken.length - 1] === undefined) this.taken.pop();
  }
}
