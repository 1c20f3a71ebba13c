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

/** The question whether anything can be written is asked again and again: a lost one must not keep the next waiting. */
const SHARE_OF_PROBE = 0.4;

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

/** Heartbeats and probes must not wait behind work, so they have connections of their own. */
export function planFor(kind: 'write' | 'read', name: WriteName | ReadName, deadlines: Deadlines): Plan {
  const { tryMs, totalMs, beatMs, slowMs } = deadlines;
  const connections = kind === 'write' ? 'writes' : 'reads';
  if (name === 'beat' || name === 'probe') {
    const ms = name === 'beat' ? beatMs : beatMs * SHARE_OF_PROBE;
    return { name, kind, connections: 'heartbeats', tryMs: ms, totalMs: ms, leastMs: ms / 5, settings: [] };
  }
  if (!SLOW.has(name)) return { name, kind, connections, tryMs, totalMs, leastMs: tryMs, settings: [] };
  const settings = [{ sql: `SET LOCAL statement_timeout = ${slowMs}`, params: [] }];
  return { name, kind, connections, tryMs: slowMs, totalMs: slowMs, leastMs: tryMs, settings };
}
