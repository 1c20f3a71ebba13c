/** An object from outside: nothing is known of what is in it. */
export type Fields = Readonly<Record<string, unknown>>;

/** More than any platform lets through in one message; what is longer was not made by one. */
const MOST_TEXT = 32_768;

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

/** A text without what stores refuse: halves of surrogate pairs, and NUL. */
export function textOf(value: unknown, most = MOST_TEXT): string | null {
  if (typeof value !== 'string') return null;
  return value.slice(0, most).toWellFormed().replaceAll('\0', '');
}

/** Like `textOf`, on one line, and null when nothing is left: names of people, chats and files. */
export function nameOf(value: unknown): string | null {
  const name = textOf(value, 256)?.replace(/\s+/g, ' ').trim();
  return name ? name : null;
}

export function integerOf(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null;
}

/** A whole number as text, as ids are passed on. */
export function integerText(value: unknown): string | null {
  return integerOf(value)?.toString() ?? null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
