import type { ReadName, WriteName } from '../catalogue.ts';
import type { Query } from '../transaction.ts';
import type { Deadlines } from './deadlines.ts';

/** How a transaction is run: on which connections, and for how long. */
export interface Plan {
  readonly name: string;
  readonly kind: 'write' | 'read';
  readonly connections: 'writes' | 'reads' | 'heartbeats';
  readonly tryMs: number;
  readonly totalMs: number;
  /** With less time left nothing is tried again: the server would not come to say why it refuses. */
  readonly leastMs: number;
  /** Statements at the beginning of the transaction. */
  readonly settings: readonly Query[];
}

/** What must not wait behind work: the lease, and the question whether anything can be written. */
const ALIVE: ReadonlySet<string> = new Set<WriteName | ReadName>(['beat', 'probe']);

/** What may have the whole log, or all of a subscriber's lanes, to go through. */
const SLOW: ReadonlySet<string> = new Set<WriteName | ReadName>([
  'checkIntegrity',
  'checkPromises',
  'deleteSession',
  'pruneSessions',
  'replay',
  'stats',
  'subscribe',
  'unsubscribe',
]);

export function planFor(kind: 'write' | 'read', name: WriteName | ReadName, deadlines: Deadlines): Plan {
  const { tryMs, totalMs, beatMs, slowMs } = deadlines;
  const connections = kind === 'write' ? 'writes' : 'reads';
  if (ALIVE.has(name)) {
    return { name, kind, connections: 'heartbeats', tryMs: beatMs, totalMs: beatMs, leastMs: beatMs / 5, settings: [] };
  }
  if (!SLOW.has(name)) return { name, kind, connections, tryMs, totalMs, leastMs: tryMs, settings: [] };
  const settings = [{ sql: `SET LOCAL statement_timeout = ${slowMs}`, params: [] }];
  return { name, kind, connections, tryMs: slowMs, totalMs: slowMs, leastMs: tryMs, settings };
}
