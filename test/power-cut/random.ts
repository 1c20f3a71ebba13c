/** A source of numbers in [0, 1). */
export type Random = () => number;

/** A seeded source (mulberry32): the same parts give the same numbers on every machine. */
export function seededRandom(...parts: number[]): Random {
  let state = 0x9e3779b9;
  for (const part of parts) state = Math.imul(state ^ part, 0x85ebca6b) ^ (state >>> 13);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `from` to `to`, both included. */
export function between(random: Random, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}
