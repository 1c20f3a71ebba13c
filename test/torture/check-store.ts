import type { Log } from './check-log.ts';
import { readSent } from './journal.ts';
import { pages, type Sql, type SqlRow, text, whole } from './sql.ts';
import type { Violations } from './violations.ts';

/** The tables at the end of a run, as far as acknowledged writes speak of them. */
export interface Tables {
  readonly sessions: ReadonlyMap<string, SqlRow>;
  readonly turns: ReadonlyMap<string, SqlRow>;
  readonly turnsByRef: ReadonlyMap<string, SqlRow>;
  /** Texts by `session:position`. */
  readonly messages: ReadonlyMap<string, string>;
  readonly deliveries: ReadonlyMap<string, SqlRow>;
}

export async function readTables(sql: Sql, violations: Violations): Promise<Tables> {
  const turns = await sql.all(
    'SELECT id, session_id, origin_ref, state, outcome, response, error, started_at, ended_at FROM turns',
  );
  const turnsByRef = new Map<string, SqlRow>();
  for (const turn of turns) {
    if (turn.origin_ref === null) continue;
    const ref = text(turn, 'origin_ref');
    violations.expect(!turnsByRef.has(ref), 'a message has two turns', () => ref);
    turnsByRef.set(ref, turn);
  }
  const messages = new Map<string, string>();
  for await (const row of pages(sql, 'SELECT * FROM messages WHERE no > ? ORDER BY no LIMIT ?')) {
    messages.set(`${row.session_id}:${row.position}`, text(row, 'text'));
  }
  return {
    sessions: byId(await sql.all('SELECT * FROM sessions')),
    turns: byId(turns),
    turnsByRef,
    messages,
    deliveries: byId(await sql.all('SELECT * FROM deliveries')),
  };
}

function byId(rows: readonly SqlRow[]): Map<string, SqlRow> {
  return new Map(rows.map((row) => [text(row, 'id'), row]));
}

/** Holds the rows against each other and against the log. */
export function checkTables(tables: Tables, log: Log, violations: Violations): void {
  const open = new Map<string, string>();
  for (const [id, row] of tables.sessions) {
    checkSession(row, log, tables, violations);
    if (row.state === 'ended') continue;
    const other = open.get(text(row, 'key'));
    violations.expect(other === undefined, 'a conversation has two open sessions', () => `${id} and ${other}`);
    open.set(text(row, 'key'), id);
    violations.expect(row.owner === null, 'a session is owned by an instance that is gone', () => {
      return `${id}: ${row.owner}`;
    });
    violations.expect(Number(row.attached) === 0, 'an attached session outlived its owner', () => id);
  }
  for (const id of log.sessions.keys()) {
    violations.expect(tables.sessions.has(id), 'a session is in the log and not in the table', () => id);
  }
  for (const turn of tables.turns.values()) checkTurn(turn, tables, log, violations);
  checkMessages(tables, violations);
}

function checkSession(row: SqlRow, log: Log, tables: Tables, violations: Violations): void {
  const id = text(row, 'id');
  const logged = log.sessions.get(id);
  if (logged === undefined) {
    violations.add('a session has no session:start', id);
    return;
  }
  violations.expect(whole(row, 'seq') === logged.lastSeq, 'the row and the log count differently', () => {
    return `${id}: ${row.seq} and ${logged.lastSeq}`;
  });
  violations.expect(logged.running === null, 'a turn runs and nobody runs it', () => `${id}: ${logged.running}`);
  violations.expect(
    (row.state === 'ended') === (logged.end !== null),
    'an end is in the row or in the log only',
    () => {
      return `${id}: ${row.state}`;
    },
  );
  if (logged.end === null) return;
  const { at, event } = logged.end;
  const says = { reason: event.reason, cause: event.cause, ended_at: at, message_count: event.message_count };
  const is = {
    reason: row.end_reason,
    cause: row.end_cause,
    ended_at: whole(row, 'ended_at'),
    message_count: whole(row, 'message_count'),
  };
  violations.expect(isSame(says, is) && is.reason !== null, 'the row and the log tell different ends', () => {
    return `${id}: ${JSON.stringify(says)} and ${JSON.stringify(is)}`;
  });
  const duration = Math.max(0, at - whole(row, 'started_at'));
  violations.expect(event.duration_ms === duration, 'an end tells a wrong duration', () => id);
  const successor = event.successor_id;
  violations.expect(
    successor === null || tables.sessions.get(String(successor))?.key === row.key,
    'an end names a successor that is not there',
    () => `${id}: ${successor}`,
  );
}

function checkTurn(turn: SqlRow, tables: Tables, log: Log, violations: Violations): void {
  const id = text(turn, 'id');
  const session = tables.sessions.get(text(turn, 'session_id'));
  if (session === undefined) {
    violations.add('a turn has no session', id);
    return;
  }
  violations.expect(
    turn.state === 'over' || session.state !== 'ended',
    'an ended session has an unfinished turn',
    () => {
      return `${id}: ${turn.state} in ${session.id}`;
    },
  );
  violations.expect(turn.state !== 'running', 'a turn runs and nobody runs it', () => id);
  violations.expect(
    (turn.started_at !== null) === log.begun.has(id),
    'a turn began in the row or in the log only',
    () => {
      return id;
    },
  );
  violations.expect(!wasForgotten(turn, log), 'a message that waited did not move on to the successor', () => id);
}

/** It waited when its session ended, another session followed, and it was not taken along. */
function wasForgotten(turn: SqlRow, log: Log): boolean {
  const end = log.sessions.get(text(turn, 'session_id'))?.end;
  if (turn.state !== 'over' || turn.error !== null || log.begun.has(text(turn, 'id'))) return false;
  return end?.event.successor_id != null && whole(turn, 'ended_at') === end.at;
}

function checkMessages(tables: Tables, violations: Violations): void {
  const counts = new Map<string, number>();
  const texts = new Set<string>();
  for (const [place, message] of tables.messages) {
    const session = place.slice(0, place.lastIndexOf(':'));
    counts.set(session, (counts.get(session) ?? 0) + 1);
    // Every run of a job is told the same, once.
    const once = tables.sessions.get(session)?.kind === 'cron' ? `${session}: ${message}` : message;
    violations.expect(!texts.has(once), 'a command was applied twice', () => `message ${message} at ${place}`);
    texts.add(once);
  }
  for (const [id, row] of tables.sessions) {
    const count = whole(row, 'message_count');
    const complete = (counts.get(id) ?? 0) === count && (count === 0 || tables.messages.has(`${id}:${count}`));
    violations.expect(complete, 'a transcript has gaps', () => `${id}: ${counts.get(id) ?? 0} of ${count}`);
  }
}

/**
 * Every reply is sent, or its failure is on record; more than once only if that is marked; and those to one conversation
 * arrive in the order in which they were written.
 */
export function checkReplies(tables: Tables, log: Log, directory: string, violations: Violations): void {
  const sent = Map.groupBy(readSent(directory), ({ id }) => id);
  const last = new Map<string, number>();
  const inOrder = [...tables.deliveries].sort(([, a], [, b]) => whole(a, 'no') - whole(b, 'no'));
  for (const [id, row] of inOrder) {
    const state = text(row, 'state');
    violations.expect(
      state === 'sent' || state === 'failed',
      'a reply is neither sent nor failed',
      () => `${id}: ${state}`,
    );
    const arrivals = sent.get(id) ?? [];
    violations.expect(arrivals.length > 0 || state === 'failed', 'a reply was settled and never sent', () => id);
    const unmarked = arrivals.filter(({ marked }) => !marked).length;
    violations.expect(unmarked <= 1, 'a reply was sent twice without a mark', () => `${id}: ${unmarked} times`);
    if (arrivals.length > 0) {
      const first = Math.min(...arrivals.map(({ t }) => t));
      const key = text(row, 'session_key');
      violations.expect(first >= (last.get(key) ?? 0), 'replies arrived out of order', () => id);
      last.set(key, first);
    }
    const events = (['sent', 'failed'] as const).filter((word) => log.ids.has(`${id}:${word}`));
    violations.expect(events.length === 1 && events[0] === state, 'a reply and its event differ', () => {
      return `${id}: ${state} and ${events.join()}`;
    });
  }
}

/** Nothing is left to do, nobody is left to do it. */
export async function checkRest(sql: Sql, violations: Violations): Promise<void> {
  const count = async (rule: string, query: string): Promise<void> => {
    const [row] = await sql.all(query);
    const n = row === undefined ? 0 : whole(row, 'n');
    violations.expect(n === 0, rule, () => String(n));
  };
  await count('lanes are left', 'SELECT count(*) AS n FROM lanes');
  await count(
    'runs of jobs are left open',
    "SELECT count(*) AS n FROM job_runs r LEFT JOIN sessions s ON s.id = r.session_id WHERE s.state <> 'ended'",
  );
  await count('dead letters are left', 'SELECT count(*) AS n FROM dead_letters');
  await count('instances are up that are gone', "SELECT count(*) AS n FROM instances WHERE state = 'up'");
  await count(
    'children outlived their parents',
    `SELECT count(*) AS n FROM sessions c JOIN sessions p ON p.id = c.parent_id
     WHERE c.kind = 'child' AND c.state <> 'ended' AND p.state = 'ended'`,
  );
  if (sql.engine !== 'sqlite') return;
  const rows = await sql.all('PRAGMA integrity_check');
  violations.expect(rows.length === 1 && rows[0]?.integrity_check === 'ok', 'the file is damaged', () => {
    return JSON.stringify(rows.slice(0, 3));
  });
}

function isSame(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(a).every(([name, value]) => value === b[name]);
}
