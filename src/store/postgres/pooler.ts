import pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { ask, connectAlone } from './connection.ts';
import { answeredWithin, type Deadlines } from './deadlines.ts';
import { ConnectionLost } from './errors.ts';

/** With fewer, a pooler that gives its server connections in turn could give us ours back each time. */
const OTHERS = 3;

const REFUSAL =
  'a pooler between Moirai and PostgreSQL gives each transaction another connection of the server: ' +
  'set pool_mode = session for this database, or connect without the pooler';

/**
 * Refuses a pooler that does not keep a connection of the server for each of ours: locks, settings, prepared statements
 * and LISTEN belong to the server's connection, and would be shared with strangers. Such a pooler is known by the process
 * id it reports for the connection, which is not the server's; without one nothing is asked twice.
 */
export async function assertOwnConnection(client: pg.Client, options: pg.ClientConfig, deadlines: Deadlines) {
  const { tryMs } = deadlines;
  const own = await backendOf(client, tryMs);
  if (own === (client as unknown as { processID: number }).processID) return;
  const others: pg.Client[] = [];
  try {
    while (others.length < OTHERS) others.push(await connectAlone(options, deadlines));
    for (const other of others) {
      await answeredWithin(tryMs, other, () => ask(other, 'BEGIN'));
      if ((await backendOf(other, tryMs)) === own) throw new MoiraiError('store_unsafe', REFUSAL);
    }
    if ((await backendOf(client, tryMs)) !== own) throw new MoiraiError('store_unsafe', REFUSAL);
    for (const other of others) await answeredWithin(tryMs, other, () => ask(other, 'ROLLBACK'));
    if ((await backendOf(client, tryMs)) !== own) throw new MoiraiError('store_unsafe', REFUSAL);
  } catch (thrown) {
    throw refusalFor(thrown);
  } finally {
    for (const other of others) other.connection.stream.destroy();
  }
}

/** A pooler says what it does not allow under 08, and one that has no connection to give says nothing. */
function refusalFor(thrown: unknown): unknown {
  if (thrown instanceof pg.DatabaseError && thrown.code?.startsWith('08')) {
    return new MoiraiError('store_unsafe', `${REFUSAL} (it says: ${thrown.message})`, { cause: thrown });
  }
  if (!(thrown instanceof ConnectionLost)) return thrown;
  const message = `the pooler between Moirai and PostgreSQL gave no further connection: ${thrown.message}`;
  return new MoiraiError('store_unreachable', message, { cause: thrown });
}

async function backendOf(client: pg.Client, ms: number): Promise<number> {
  const [row] = await answeredWithin(ms, client, () => ask(client, 'SELECT pg_backend_pid() AS pid'));
  return Number(row?.pid);
}
