/**
 * Patterns of commands that run without asking. A pattern is the whole command, word by word:
 *
 * | word | stands for |
 * |---|---|
 * | `*` | one argument that is no option: it does not begin with `-` |
 * | `...` at the end | any number of such arguments, also none |
 * | `**` at the end | any number of any arguments, options too |
 * | anything else | itself |
 *
 * Only a command of plain words is compared: quotes, variables, substitutions, patterns of file names, redirections, line
 * breaks and everything else that a shell reads as more than a word never match, whatever the pattern.
 */
const ONE = '*';
const ARGUMENTS = '...';
const REST = '**';
const WILDCARDS = [ONE, ARGUMENTS, REST];

/** No character that a shell gives a meaning to, wherever it stands in a word. */
const PLAIN_WORD = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/** What is wrong with a pattern, as the end of a sentence; null for a good one. */
export function patternFault(pattern: string): string | null {
  const words = wordsOf(pattern);
  const [program = ''] = words;
  if (words.length === 0) return 'empty';
  if (WILDCARDS.includes(program)) return 'no pattern of a command: it begins with the name of a program';
  const early = words.slice(0, -1).find((word) => word === ARGUMENTS || word === REST);
  if (early !== undefined) return `no pattern of a command: ${early} stands at its end`;
  const odd = words.find((word) => !WILDCARDS.includes(word) && !isPlain(word));
  return odd === undefined ? null : `a pattern that no command fits: "${odd}" has a sign of the shell`;
}

/** Whether one of the patterns is this whole command. */
export function matchesCommand(patterns: readonly string[], command: string): boolean {
  const words = wordsOf(command);
  if (words.length === 0 || !words.every(isPlain)) return false;
  return patterns.some((pattern) => patternFault(pattern) === null && fits(wordsOf(pattern), words));
}

function fits(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.at(-1) === ARGUMENTS || pattern.at(-1) === REST;
  const fixed = open ? pattern.slice(0, -1) : pattern;
  const rest = words.slice(fixed.length);
  if (words.length < fixed.length || (!open && rest.length > 0)) return false;
  if (!fixed.every((word, i) => (word === ONE ? isArgument(words[i] ?? '-') : word === words[i]))) return false;
  return pattern.at(-1) !== ARGUMENTS || rest.every(isArgument);
}

function isPlain(word: string): boolean {
  return PLAIN_WORD.test(word);
}

function isArgument(word: string): boolean {
  return !word.startsWith('-');
}

/** Words are separated as a shell does it: by spaces and tabs. A line break stays in its word, and makes it none. */
function wordsOf(text: string): string[] {
  return text.split(/[ \t]/).filter((word) => word !== '');
}
