import { readFileSync } from 'node:fs';

const POLL_MS = 200;
const MAX_DEPTH = 6;

/**
 * `npx moirai run` is three processes deep: npm, its shell, and this one. A SIGKILL for npm is meant for the command, but
 * does not reach it; so this process watches npm. A shell without its npm shows that npm was killed, and then this process
 * kills itself; a shell that ended has put this process into the background on purpose. (Without /proc, killing npm leaves
 * it running.)
 */
export function dieWithNpm(): void {
  if (process.env.npm_command === undefined) return;
  const found = findNpm();
  if (found === null) return;
  const { npm, child } = found;
  const timer = setInterval(() => {
    if (!isSame(child)) clearInterval(timer);
    else if (!isSame(npm)) process.kill(process.pid, 'SIGKILL');
  }, POLL_MS);
  timer.unref();
}

interface Stat {
  readonly pid: number;
  readonly name: string;
  readonly parent: number;
  readonly started: string;
}

/** The npm above us, and its child that we descend from (or are). */
function findNpm(): { npm: Stat; child: Stat } | null {
  let child = readStat(process.pid);
  for (let depth = 0; depth < MAX_DEPTH && child !== null; depth++) {
    const parent = readStat(child.parent);
    if (parent?.name.startsWith('npm')) return { npm: parent, child };
    child = parent;
  }
  return null;
}

function isSame({ pid, started }: Stat): boolean {
  return readStat(pid)?.started === started;
}

/** Null for a process that is gone; a zombie is. */
function readStat(pid: number): Stat | null {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null; // No such process, or no /proc.
  }
  const end = line.lastIndexOf(')'); // The name, in parentheses, may contain anything.
  const [state, parent, ...rest] = line.slice(end + 2).split(' ');
  if (state === 'Z' || state === 'X') return null;
  return { pid, name: line.slice(line.indexOf('(') + 1, end), parent: Number(parent), started: rest[17] ?? '' };
}
