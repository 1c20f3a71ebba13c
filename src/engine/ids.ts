/** Where ids come from. Injected, so that a simulation makes the same ones again. */
export interface Ids {
  session(): string;
  turn(): string;
  delivery(): string;
  approval(): string;
  command(): string;
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_CHARS = 10;
const RANDOM_CHARS = 16;

/**
 * Ids that sort by the time they were made (to the millisecond, and in order within one) and never repeat: ten
 * characters of time, sixteen of chance, behind a prefix that says what they name.
 */
export function timeSortedIds(now: () => number, random: () => number): Ids {
  let lastTime = -1;
  let lastRandom: number[] = [];
  const next = (prefix: string): string => {
    const time = Math.max(now(), lastTime);
    lastRandom = time === lastTime ? increment(lastRandom) : draw(random);
    lastTime = time;
    return `${prefix}_${encodeTime(time)}${lastRandom.map((digit) => ALPHABET[digit]).join('')}`;
  };
  return {
    session: () => next('ses'),
    turn: () => next('trn'),
    delivery: () => next('dlv'),
    approval: () => next('apr'),
    command: () => next('cmd'),
  };
}

function encodeTime(time: number): string {
  let rest = time;
  let text = '';
  for (let i = 0; i < TIME_CHARS; i++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function draw(random: () => number): number[] {
  return Array.from({ length: RANDOM_CHARS }, () => Math.floor(random() * 32));
}

function increment(digits: readonly number[]): number[] {
  const next = [...digits];
  for (let i = next.length - 1; i >= 0; i--) {
    const digit = (next[i] ?? 0) + 1;
    next[i] = digit % 32;
    if (digit < 32) break;
  }
  return next;
}
