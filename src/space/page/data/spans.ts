/** Times in words. */

const STEPS: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** How long something is, in its two largest steps: `2 h 5 min`. */
export function spanOf(ms: number): string {
  let seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds === 0) return '0 s';
  const words: string[] = [];
  for (const [name, length] of STEPS) {
    const count = Math.floor(seconds / length);
    seconds -= count * length;
    if (count > 0) words.push(`${count} ${name}`);
    else if (words.length > 0) break;
    if (words.length === 2) break;
  }
  return words.join(' ');
}

/** How long ago, roughly: `now`, `12 s ago`, `3 h ago`. Clocks differ: what seems to come is now. */
export function agoOf(at: string, now: number): string {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return 'unknown';
  const seconds = Math.floor((now - time) / 1000);
  if (seconds < 2) return 'now';
  const [name, length] = STEPS.find(([, step]) => seconds >= step) ?? ['s', 1];
  return `${Math.floor(seconds / length)} ${name} ago`;
}

/** Until a deadline: `in 4 min 10 s`, or that it is over. */
export function untilOf(at: string, now: number): string {
  const left = Date.parse(at) - now;
  if (Number.isNaN(left)) return 'unknown';
  return left > 0 ? `in ${spanOf(left)}` : `over since ${spanOf(-left)}`;
}

/** Until a deadline, to the second: `in 1 d 02:03:04`. */
export function countdownOf(at: string, now: number): string {
  const left = Math.round((Date.parse(at) - now) / 1000);
  if (Number.isNaN(left)) return 'unknown';
  if (left <= 0) return untilOf(at, now);
  const [days, hours, minutes, seconds] = [left / 86_400, (left / 3_600) % 24, (left / 60) % 60, left % 60].map(
    Math.floor,
  );
  const clock = [hours, minutes, seconds].map((part) => String(part).padStart(2, '0')).join(':');
  return `in ${days === 0 ? '' : `${days} d `}${clock}`;
}

/** A time in full, in the person's own zone. */
export function momentOf(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time)
    ? 'unknown'
    : new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** A time as people say it: the hour today, the day before that. */
export function when(at: string, now = new Date()): string {
  const time = new Date(at);
  const hour = time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  if (time.toDateString() === now.toDateString()) return hour;
  const year = time.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' as const };
  return `${time.toLocaleDateString([], { day: 'numeric', month: 'short', ...year })}, ${hour}`;
}
