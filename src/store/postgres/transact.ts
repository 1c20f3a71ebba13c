import type pg from 'pg';
import type { ResetRules } from '../../lifecycle/reset-policy.ts';
import type { StoreClock } from '../clock.ts';
import { assertNotNewer } from '../migrations/migrations.ts';
import { type Effects, noEffects, type Query, type Row, type Tx, type TxContext } from '../transaction.ts';
import { postgresDialect } from './dialect.ts';
import { haveAnswer, runBatch } from './pipeline.ts';

const BEGIN: Query = { sql: 'BEGIN', params: [] };
const COMMIT: Query = { sql: 'COMMIT', params: [] };
/** The time, and the version of the schema: reading it also makes a migration wait for the end of the transaction. */
const CLOCK: Query = {
  sql: `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
    (SELECT value FROM meta WHERE name = 'schema') AS schema`,
  params: [],
};

/** What a transaction returns, once the statements that are not sent yet have been taken too. */
export interface Outcome<T> {
  readonly value: T;
  readonly unsent: readonly Query[];
}

/** Runs a transaction's statements on a client that has a transaction open, up to the last one that has an answer. */
export async function runOn<T>(client: pg.ClientBase, tx: Tx<T>, first = tx.next()): Promise<Outcome<T>> {
  let step = first;
  let unsent: Query[] = [];
  while (!step.done) {
    if (!haveAnswer(step.value)) {
      unsent.push(...step.value);
      step = tx.next(step.value.map(() => []));
      continue;
    }
    const rows = await runBatch(client, [...unsent, ...step.value]);
    const answers = rows.slice(unsent.length);
    unsent = [];
    step = tx.next(answers);
  }
  return { value: step.value, unsent };
}

/**
 * Opens a transaction and runs it up to its commit. Most transactions ask something before they look at the clock:
 * their first statements travel with BEGIN. Those that look first are made anew once it is known.
 */
export async function runNew<T>(
  client: pg.ClientBase,
  context: ServerContext,
  make: () => Tx<T>,
  settings: readonly Query[] = [],
): Promise<Outcome<T>> {
  const early = firstStep(make);
  const ahead = early?.step.value ?? [];
  const answers = await runBatch(client, [BEGIN, ...settings, CLOCK, ...ahead]);
  const [clock = [], ...rows] = answers.slice(1 + settings.length);
  context.tell(clock);
  if (early === null) return runOn(client, make());
  return runOn(client, early.tx, early.tx.next(rows));
}

export async function commit(client: pg.ClientBase, { unsent }: Outcome<unknown>): Promise<void> {
  await runBatch(client, [...unsent, COMMIT]);
}

interface Early<T> {
  readonly tx: Tx<T>;
  readonly step: IteratorYieldResult<readonly Query[]>;
}

/** A transaction that has asked its first question; null when it cannot ask before it knows the time. */
function firstStep<T>(make: () => Tx<T>): Early<T> | null {
  const tx = make();
  try {
    const step = tx.next();
    return step.done ? null : { tx, step };
  } catch (thrown) {
    if (thrown instanceof ClockUnknown) return null;
    throw thrown;
  }
}

class ClockUnknown extends Error {}

/** What a transaction knows; the time is the server's, so it is not known before the first answer. */
export class ServerContext implements TxContext {
  readonly dialect = postgresDialect;
  readonly effects: Effects = noEffects();
  readonly rules: ResetRules;
  readonly #writes: boolean;
  readonly #simulated: StoreClock | null;
  #time: { readonly now: number; readonly lease: number } | null = null;

  constructor(writes: boolean, rules: ResetRules, simulated: StoreClock | null) {
    this.#writes = writes;
    this.rules = rules;
    this.#simulated = simulated;
  }

  get now(): number {
    return this.#known().now;
  }

  get leaseNow(): number {
    return this.#known().lease;
  }

  /**
   * Takes the answer to `CLOCK`. From now on time stands still for this transaction. Another process may have raised the
   * schema since this store was opened: then this program writes nothing more.
   */
  tell([row]: readonly Row[]): void {
    if (this.#writes) assertNotNewer(Number(row?.schema ?? 0));
    const server = Number(row?.now ?? 0);
    this.#time = { now: this.#simulated?.now() ?? server, lease: this.#simulated?.lease() ?? server };
  }

  #known(): { readonly now: number; readonly lease: number } {
    if (this.#time === null) throw new ClockUnknown('the time is known after the first statement');
    return this.#time;
  }
}
