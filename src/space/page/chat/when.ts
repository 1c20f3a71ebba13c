/** A time as people say it: the hour today, the day before that. */
export function when(at: string, now = new Date()): string {
  const time = new Date(at);
  const hour = time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  if (time.toDateString() === now.toDateString()) return hour;
  const year = time.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' as const };
  return `${time.toLocaleDateString([], { day: 'numeric', month: 'short', ...year })}, ${hour}`;
}
