import { readdirSync, readFileSync } from 'node:fs';
import { MARKER } from './protocol.ts';

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The number in its marker, if it has one of this host process. */
  readonly marked: number | null;
}

/** Every process of this machine, as far as it may be read; nothing where there is no /proc. */
function listProcesses(token: string): ProcessFacts[] {
  return pidsInProc().flatMap((pid) => {
    const stat = readProc(pid, 'stat');
    // Behind the name, which may have spaces and parentheses: state, parent, group, session.
    const [, parent = 0, group = 0, session = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ', 4)
      .map(Number);
    return stat === '' ? [] : [{ pid, parent, group, session, marked: markOf(pid, token) }];
  });
}

function markOf(pid: number, token: string): number | null {
  const environ = readProc(pid, 'environ');
  const at = environ.indexOf(`${MARKER}=${token}.`);
  return at < 0 ? null : Number.parseInt(environ.slice(at + MARKER.length + token.length + 2), 10);
}

/** A process with all it started: its descendants, its group and session, and every process that inherited its marker. */
export function findFamily(pid: number, token: string, number: number): number[] {
  const all = listProcesses(token);
  const family = new Set<number>();
  const add = (member: number): void => {
    if (family.has(member)) return;
    family.add(member);
    for (const each of all) if (each.parent === member) add(each.pid);
  };
  for (const each of all) {
    const isMember = each.pid === pid || each.group === pid || each.session === pid || each.marked === number;
    if (isMember) add(each.pid);
  }
  return [...family];
}

/** The processes that carry one of these markers. */
export function findMarked(token: string, numbers: ReadonlySet<number>): number[] {
  return pidsInProc().filter((pid) => numbers.has(markOf(pid, token) ?? -1));
}

/** Megabytes that a process has in memory; 0 where that cannot be known. */
export function residentMb(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(readProc(pid, 'status')) ?? [];
  return Number(kilobytes) / 1024;
}

function pidsInProc(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** Empty for a process that is gone, or belongs to another user. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
