/** Discord's ids: numbers as text, the first 42 bits of which are the time. */

const EPOCH_MS = 1_420_070_400_000n;

/** An id from outside; null for what is none. */
export function snowflakeOf(value: unknown): string | null {
  return typeof value === 'string' && /^[1-9]\d{0,19}$/.test(value) ? value : null;
}

/** When it was made, epoch milliseconds. */
export function timeOf(id: string): number {
  return Number((BigInt(id) >> 22n) + EPOCH_MS);
}

/** Those of a server that is not Discord's own may hold no time. */
export function holdsTime(id: string): boolean {
  return id.length >= 17;
}

/** The first id of a moment. */
export function snowflakeAt(ms: number): string {
  const since = BigInt(Math.max(0, Math.floor(ms))) - EPOCH_MS;
  return String((since < 0n ? 0n : since) << 22n);
}

export function compareIds(one: string, other: string): number {
  const [a, b] = [BigInt(one), BigInt(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

export function laterOf(one: string, other: string): string {
  return compareIds(one, other) < 0 ? other : one;
}
