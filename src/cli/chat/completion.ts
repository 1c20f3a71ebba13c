import { COMMANDS } from '../../commands/catalogue.ts';

/** Commands of the terminal itself, beside those of every platform. */
export const LEAVING: readonly string[] = ['quit', 'exit'];

export interface Completion {
  /** The line after it. */
  readonly text: string;
  /** What else it could become; empty when there is no doubt. */
  readonly choices: readonly string[];
}

const NAMES = [...COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]), ...LEAVING].map(
  (name) => `/${name}`,
);

/** Completes the name of a slash command; null where there is none to complete. */
export function complete(line: string): Completion | null {
  if (!/^\/[a-z0-9_-]*$/i.test(line)) return null;
  const choices = NAMES.filter((name) => name.startsWith(line.toLowerCase())).sort();
  const [only] = choices;
  if (only === undefined) return null;
  if (choices.length === 1) return { text: `${only} `, choices: [] };
  return { text: choices.reduce(commonBeginning), choices };
}

function commonBeginning(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
