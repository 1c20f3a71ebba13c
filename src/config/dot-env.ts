import type { Problem } from './problem.ts';

const LINE = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/;
const DOUBLE_QUOTED = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/;
const SINGLE_QUOTED = /^'([^']*)'\s*(?:#.*)?$/;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/**
 * What a `.env` file says, and the lines that could not be read. Reads lines of `NAME=value`, an `export ` before them left aside. In double quotes `\n`, `\"` and `\\` are escapes, in
 * single quotes nothing is; without quotes a comment begins with ` #`, so that a `#` inside a password is none.
 */
export function parseDotEnv(file: string, text: string) {
  const values: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, name, written] = LINE.exec(line.trim()) ?? [];
    const value = written === undefined ? null : unquote(written.trimStart());
    if (name === undefined || value === null) problems.push(unreadable(file, i + 1, name));
    else values[name] = value;
  }
  return { values, problems };
}

function unquote(written: string): string | null {
  if (written.startsWith('"')) {
    return (
      DOUBLE_QUOTED.exec(written)?.[1]?.replace(/\\(.)/g, (_, letter: string) => ESCAPES[letter] ?? letter) ?? null
    );
  }
  if (written.startsWith("'")) return SINGLE_QUOTED.exec(written)?.[1] ?? null;
  const comment = written.search(/(?<=^|\s)#/);
  return comment < 0 ? written : written.slice(0, comment).trimEnd();
}

/** Without the line itself, which may hold a secret. */
function unreadable(file: string, line: number, name: string | undefined): Problem {
  const message = name === undefined ? 'this is not NAME=value' : 'the quotes do not end where the line ends';
  return { file, line, column: 1, path: name ?? '', message, nearest: null };
}
