import type pg from 'pg';
import { ConnectionLost } from './errors.ts';

/** How long the server is waited for. Tests use shorter ones. */
export interface Deadlines {
  /** One try of a transaction, from its first statement to the answer to its commit; also one attempt to connect. */
  readonly tryMs: number;
  /** A transaction with all its tries, and with its waiting for others. */
  readonly totalMs: number;
  /** A heartbeat with all its tries. */
  readonly beatMs: number;
  /** A transaction that may have the whole log to read or to write, with all its tries. */
  readonly slowMs: number;
}

export const DEADLINES: Deadlines = { tryMs: 10_000, totalMs: 30_000, beatMs: 5000, slowMs: 60_000 };

/**
 * Work on a connection that must be over in time. After that the connection is destroyed: what is still on its way there
 * would be taken for the answer to something else, and a network that has gone silent tells nobody.
 */
export async function answeredWithin<T>(ms: number, client: pg.Client, work: () => Promise<T>): Promise<T> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    client.connection.stream.destroy();
  }, ms);
  try {
    return await work();
  } catch (thrown) {
    if (!late) throw thrown;
    throw new ConnectionLost(`the server did not answer within ${ms} ms`, { cause: thrown });
  } finally {
    clearTimeout(timer);
  }
}
