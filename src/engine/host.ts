import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Instance, InstanceFacts } from '../store/transactions/liveness.ts';

/** What tells this process from every other one, now and after a reboot. */
export type HostFacts = Pick<InstanceFacts, 'host' | 'bootId' | 'pidSpace' | 'pid' | 'pidStarted'>;

export function describeThisProcess(): HostFacts {
  return {
    host: hostname(),
    bootId: bootId(),
    pidSpace: pidSpace(),
    pid: process.pid,
    pidStarted: processStart(process.pid),
  };
}

/**
 * Whether an instance is certainly dead, as seen from this process. Only proof counts: another boot of this machine,
 * or a process id of this very process table that is gone, a zombie, or belongs to a later process. Where nothing can be
 * proven (another machine, another container), the lease decides.
 */
export function isProvenDead(other: Instance, self: HostFacts, oneMachine: boolean): boolean {
  if (other.bootId === null || self.bootId === null) return false;
  if (other.bootId !== self.bootId) return oneMachine || other.host === self.host;
  if (other.pidSpace === null || other.pidSpace !== self.pidSpace || other.pidStarted === null) return false;
  return processStart(other.pid) !== other.pidStarted;
}

/** When a process started, in the system's own words; null when there is no such process (any more). */
export function processStart(pid: number): string | null {
  return process.platform === 'linux' ? startFromProc(pid) : startFromPs(pid);
}

function startFromProc(pid: number): string | null {
  const stat = orNull(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === null) return null;
  // The name, in parentheses, may contain anything; the fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  if (state === 'Z' || state === 'X') return null;
  return fields[19] ?? null;
}

function startFromPs(pid: number): string | null {
  // ps exits with 1 when there is no such process.
  const text = orNull(() =>
    execFileSync('ps', ['-o', 'lstart=,stat=', '-p', String(pid)], { encoding: 'utf8' }).trim(),
  );
  if (text === null || text === '') return null;
  const beforeState = text.lastIndexOf(' ');
  return text.startsWith('Z', beforeState + 1) ? null : text.slice(0, beforeState).trimEnd();
}

/** Without it only the lease tells the dead from the living. */
function bootId(): string | null {
  if (process.platform === 'darwin') {
    return orNull(() => execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim());
  }
  return orNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
}

/** Process ids mean something only within their namespace; containers have their own. */
function pidSpace(): string | null {
  if (process.platform !== 'linux') return process.platform;
  // Without the link processes of other containers cannot be told apart, so nothing is proven.
  return orNull(() => readlinkSync('/proc/self/ns/pid'));
}

/** What the system says; null for what it does not have. */
function orNull(ask: () => string): string | null {
  try {
    return ask();
  } catch {
    return null;
  }
}
