import pg from 'pg';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { ask, settle } from './connection.ts';
import { answeredWithin, type Deadlines } from './deadlines.ts';
import { fromDriver, isAway } from './errors.ts';
import { Gate } from './gate.ts';
import type { Plan } from './plan.ts';

const MAX_CONNECTIONS = 20;
const SHARE_OF_WRITES = 0.7;
/** One for the lease, one to find out whether anything can be written. */
const HEARTBEATS = 2;

/**
 * The connections of a store. Writes and reads have a share each, and heartbeats connections of their own: however much
 * of one kind waits for the server, the others go on.
 */
export class Connections {
  readonly #work: pg.Pool;
  readonly #heartbeats: pg.Pool;
  readonly #gates: Readonly<Record<Plan['connections'], Gate>>;
  readonly #tryMs: number;

  constructor(options: pg.ClientConfig, deadlines: Deadlines, max = MAX_CONNECTIONS) {
    const writes = Math.max(1, Math.floor(max * SHARE_OF_WRITES));
    const reads = Math.max(1, max - writes);
    this.#tryMs = deadlines.tryMs;
    this.#work = poolOf({ ...options, max: writes + reads }, deadlines);
    const beating = { ...deadlines, tryMs: deadlines.beatMs };
    const connectionTimeoutMillis = deadlines.beatMs;
    // Kept while nothing happens: it is needed again at the next heartbeat.
    this.#heartbeats = poolOf({ ...options, connectionTimeoutMillis, max: HEARTBEATS, idleTimeoutMillis: 0 }, beating);
    this.#gates = { writes: new Gate(writes), reads: new Gate(reads), heartbeats: new Gate(HEARTBEATS) };
  }

  /** Runs something on a connection, which is undone and destroyed as it must be when that fails or comes too late. */
  async use<T>(plan: Plan, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const gate = this.#gates[plan.connections];
    const waitMs = plan.totalMs - plan.leastMs;
    await gate.enter(waitMs, () => {
      return new MoiraiError('store_timeout', `no connection to the database was free within ${Math.round(waitMs)} ms`);
    });
    try {
      return await this.#run(plan, work);
    } finally {
      gate.leave();
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#work.end(), this.#heartbeats.end()]);
  }

  async #run<T>(plan: Plan, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const until = performance.now() + plan.tryMs;
    const pool = plan.connections === 'heartbeats' ? this.#heartbeats : this.#work;
    const client = await pool.connect().catch((thrown: unknown) => {
      throw fromDriver(thrown);
    });
    try {
      const value = await answeredWithin(until - performance.now(), client, () => work(client));
      client.release();
      return value;
    } catch (thrown) {
      await this.#giveBack(client, thrown);
      throw thrown;
    }
  }

  /** Undoes the transaction and returns the connection, or throws the connection away when it is broken. */
  async #giveBack(client: pg.PoolClient, thrown: unknown): Promise<void> {
    if (isAway(thrown)) {
      client.release(true);
      return;
    }
    try {
      await answeredWithin(this.#tryMs, client, () => ask(client, 'ROLLBACK'));
      client.release();
    } catch {
      client.release(true); // Broken meanwhile; the server undoes what an ended connection left open.
    }
  }
}

function poolOf(options: pg.PoolConfig, deadlines: Deadlines): pg.Pool {
  const onConnect = (client: pg.ClientBase): Promise<void> => settle(client as pg.Client, deadlines);
  const pool = new pg.Pool({ ...options, onConnect });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => undefined);
  // So would one that breaks in the middle of a transaction; there the next statement tells, and all is tried again.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}
