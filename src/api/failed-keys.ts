const MOST_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Addresses remembered at a time; with more guessing at once, the oldest get their chances back. */
const MOST_ADDRESSES = 10_000;

interface Failures {
  readonly since: number;
  readonly count: number;
}

/** Counts wrong keys by address: after ten in a minute further ones are too many until the minute is over. */
export class FailedKeys {
  readonly #byAddress = new Map<string, Failures>();

  note(address: string, now: number): void {
    const place = placeOf(address);
    const known = this.#current(place, now);
    this.#byAddress.delete(place);
    this.#byAddress.set(place, { since: known?.since ?? now, count: (known?.count ?? 0) + 1 });
    const [oldest] = this.#byAddress.keys();
    if (this.#byAddress.size > MOST_ADDRESSES && oldest !== undefined) this.#byAddress.delete(oldest);
  }

  /** How long further wrong keys of an address are too many; 0 when they are not. */
  waitSeconds(address: string, now: number): number {
    const known = this.#current(placeOf(address), now);
    if (known === undefined || known.count < MOST_FAILURES) return 0;
    return Math.max(1, Math.ceil((known.since + WINDOW_MS - now) / 1000));
  }

  #current(place: string, now: number): Failures | undefined {
    const known = this.#byAddress.get(place);
    // A clock that was set back must not lock an address out for longer.
    return known !== undefined && Math.abs(now - known.since) < WINDOW_MS ? known : undefined;
  }
}

/** One customer has a whole /64 of IPv6 addresses, and would have as many chances. */
function placeOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('%')[0]?.split('::') ?? [];
  const groups = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0');
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':');
}
