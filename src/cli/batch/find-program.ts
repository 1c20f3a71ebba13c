import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
const LONGEST_SHEBANG = 256;

/** Where a command is, or why it cannot be started, as a shell would say it: 127 not found, 126 not executable. */
export type Found = { readonly file: string } | { readonly exitCode: 126 | 127; readonly fault: string };

/**
 * Looks for a command as `exec` will, before it is started: afterwards a command that could not be started looks like one
 * that exited with the same code.
 */
export function findProgram(name: string, path = DEFAULT_PATH): Found {
  if (name === '') return { exitCode: 127, fault: 'the command has no name' };
  const candidates = name.includes('/') ? [name] : path.split(delimiter).map((folder) => join(folder || '.', name));
  const file = candidates.find(isExecutable);
  if (file !== undefined) return faultOfInterpreter(file) ?? { file };
  const present = candidates.find(exists);
  if (present === undefined) return { exitCode: 127, fault: `${name}: command not found` };
  return { exitCode: 126, fault: `${present} is not executable` };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false; // Not there, or not for us.
  }
}

function exists(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined;
}

/** A script whose interpreter is missing is not started either, though the file is there. */
function faultOfInterpreter(file: string): Found | null {
  const interpreter = /^#!\s*(\S+)/.exec(firstBytes(file))?.[1];
  if (interpreter === undefined || isExecutable(interpreter)) return null;
  return { exitCode: 127, fault: `${file} needs ${interpreter}, which is not there` };
}

function firstBytes(file: string): string {
  const bytes = Buffer.alloc(LONGEST_SHEBANG);
  try {
    const fd = openSync(file, 'r');
    try {
      return bytes.toString('latin1', 0, readSync(fd, bytes));
    } finally {
      closeSync(fd);
    }
  } catch {
    return ''; // Executable and not readable: then it is no script.
  }
}
