import { type MoiraiEvent, matches } from '../../src/lifecycle/events.ts';
import { readAcks, readHeard } from './journal.ts';
import { SUBSCRIPTIONS, type SubscriberName } from './settings.ts';
import { pages, type Sql, type SqlRow, text, whole } from './sql.ts';
import type { Violations } from './violations.ts';

/** What the log says of one session. */
export interface SessionLog {
  readonly key: string;
  lastSeq: number;
  end: { readonly at: number; readonly event: MoiraiEvent } | null;
  /** The turn that runs at this point of the log. */
  running: string | null;
  /** Who runs it, or whom the session is attached to. */
  owner: string | null;
}

/** What the log says, read once from its beginning to its end. */
export interface Log {
  readonly events: number;
  readonly sessions: ReadonlyMap<string, SessionLog>;
  readonly ids: ReadonlySet<string>;
  /** How often each turn began, by `agent:start`. */
  readonly begun: ReadonlyMap<string, number>;
  /** Texts that commands left in the log; each of them once. */
  readonly tags: ReadonlySet<string>;
  /** Events that acknowledged writes speak of, by id. */
  readonly wanted: ReadonlyMap<string, MoiraiEvent>;
  readonly delivered: { readonly total: number; readonly repeated: number; readonly dead: number };
}

interface Listener {
  readonly name: SubscriberName;
  /** When each event was heard first. */
  readonly first: ReadonlyMap<string, number>;
  /** The latest first hearing so far, by conversation. */
  readonly latest: Map<string, number>;
}

/** Reads the whole log and holds everything in it against the rules; keeps the events whose ids are in `wanted`. */
export async function checkLog(
  sql: Sql,
  directory: string,
  wanted: ReadonlySet<string>,
  violations: Violations,
): Promise<Log> {
  const gone = { lost: await lostInstances(sql, violations), left: leftInstances(directory) };
  const reader = new LogReader(violations, await deadLetters(sql), gone);
  const listeners = (Object.keys(SUBSCRIPTIONS) as SubscriberName[]).map((name) => reader.listen(directory, name));
  const kept = new Map<string, MoiraiEvent>();
  const query =
    'SELECT no, session_id, session_seq, session_key, type, at, body FROM events WHERE no > ? ORDER BY no LIMIT ?';
  for await (const row of pages(sql, query)) {
    const event = JSON.parse(text(row, 'body')) as MoiraiEvent;
    reader.read(row, event);
    for (const listener of listeners) reader.checkHearing(listener, event, text(row, 'session_key'));
    if (wanted.has(event.id)) kept.set(event.id, event);
  }
  reader.checkStrangers(listeners);
  return { ...reader.summary(), wanted: kept };
}

/** `subscriber event` of what was given up on once: it is replayed at the end, out of order. */
async function deadLetters(sql: Sql): Promise<Set<string>> {
  const rows = await sql.all("SELECT body FROM events WHERE type = 'hook:failed'");
  const failures = rows.map((row) => JSON.parse(text(row, 'body')) as MoiraiEvent);
  return new Set(failures.filter(({ dead }) => dead).map((event) => `${event.subscriber} ${event.event_id}`));
}

interface Loss {
  readonly no: number;
  readonly at: number;
}

async function lostInstances(sql: Sql, violations: Violations): Promise<Map<string, Loss>> {
  const losses = new Map<string, Loss>();
  for (const row of await sql.all("SELECT no, at, body FROM events WHERE type = 'instance:lost' ORDER BY no")) {
    const { instance } = JSON.parse(text(row, 'body')) as { instance: string };
    violations.expect(!losses.has(instance), 'an instance was lost twice', () => instance);
    losses.set(instance, { no: whole(row, 'no'), at: whole(row, 'at') });
  }
  return losses;
}

/** Instances that left in order. */
function leftInstances(directory: string): Set<string> {
  const left = new Set<string>();
  for (const line of readAcks(directory)) if (line.line === 'stopping') left.add(line.instance);
  return left;
}

interface Gone {
  readonly lost: ReadonlyMap<string, Loss>;
  readonly left: ReadonlySet<string>;
}

class LogReader {
  readonly #violations: Violations;
  readonly #dead: ReadonlySet<string>;
  readonly #gone: Gone;
  readonly #sessions = new Map<string, SessionLog>();
  readonly #open = new Map<string, string>();
  readonly #ids = new Set<string>();
  readonly #begun = new Map<string, number>();
  readonly #tags = new Set<string>();
  #events = 0;
  #delivered = 0;
  #repeated = 0;

  constructor(violations: Violations, dead: ReadonlySet<string>, gone: Gone) {
    this.#violations = violations;
    this.#dead = dead;
    this.#gone = gone;
  }

  listen(directory: string, name: SubscriberName): Listener {
    const first = new Map<string, number>();
    for (const { id, t } of readHeard(directory, name)) {
      const known = first.get(id);
      if (known !== undefined) this.#repeated++;
      first.set(id, Math.min(known ?? t, t));
      this.#delivered++;
    }
    return { name, first, latest: new Map() };
  }

  read(row: SqlRow, event: MoiraiEvent): void {
    this.#events++;
    this.#violations.expect(!this.#ids.has(event.id), 'two events have one id', () => event.id);
    this.#ids.add(event.id);
    this.#checkRow(row, event);
    this.#checkGiver(row, event);
    this.#noteTag(event);
    if (event.session_id !== null && event.session_seq !== null) this.#follow(event.session_id, row, event);
  }

  summary(): Omit<Log, 'wanted'> {
    return {
      events: this.#events,
      sessions: this.#sessions,
      ids: this.#ids,
      begun: this.#begun,
      tags: this.#tags,
      delivered: { total: this.#delivered, repeated: this.#repeated, dead: this.#dead.size },
    };
  }

  checkHearing(listener: Listener, event: MoiraiEvent, key: string): void {
    const { name } = listener;
    if (!SUBSCRIPTIONS[name].some((pattern) => matches(pattern, event.type))) return;
    if (event.type === 'hook:failed' && event.subscriber === name) return;
    const t = listener.first.get(event.id);
    if (t === undefined) {
      this.#violations.add('an event was never delivered', `${name}: ${event.type} ${event.id}`);
      return;
    }
    if (this.#dead.has(`${name} ${event.id}`)) return;
    const before = listener.latest.get(key) ?? 0;
    this.#violations.expect(t >= before, 'an event was first delivered before an earlier one', () => {
      return `${name}: ${event.type} ${event.id}, ${before - t} µs too early`;
    });
    listener.latest.set(key, Math.max(before, t));
  }

  /** Nobody hears what is not in the log. */
  checkStrangers(listeners: readonly Listener[]): void {
    for (const { name, first } of listeners) {
      for (const id of first.keys()) {
        this.#violations.expect(this.#ids.has(id), 'an event was delivered that is not in the log', () => {
          return `${name}: ${id}`;
        });
      }
    }
  }

  #checkRow(row: SqlRow, event: MoiraiEvent): void {
    const same =
      row.session_id === event.session_id &&
      (row.session_seq === null ? null : whole(row, 'session_seq')) === event.session_seq &&
      row.session_key === (event.session_key ?? '') &&
      row.type === event.type &&
      new Date(whole(row, 'at')).toISOString() === event.at;
    this.#violations.expect(same, 'an event and its row differ', () => `${event.id}: ${JSON.stringify(row)}`);
  }

  /** Nobody writes once his lease is lost: the store's clock says so, and on SQLite so does the order of commits. */
  #checkGiver(row: SqlRow, event: MoiraiEvent): void {
    const loss = event.type === 'instance:lost' ? undefined : this.#gone.lost.get(event.instance ?? '');
    if (loss === undefined) return;
    this.#violations.expect(whole(row, 'at') <= loss.at, 'an instance wrote after it was lost', () => {
      return `${event.instance}: ${event.type} ${event.id}, ${whole(row, 'at') - loss.at} ms after`;
    });
  }

  #noteTag(event: MoiraiEvent): void {
    const tag = event.type.startsWith('command:') ? event.args : event.type === 'session:title' ? event.title : null;
    if (typeof tag !== 'string') return;
    this.#violations.expect(!this.#tags.has(tag), 'a command was applied twice', () => `${event.type} ${event.id}`);
    this.#tags.add(tag);
  }

  #follow(id: string, row: SqlRow, event: MoiraiEvent): void {
    const key = text(row, 'session_key');
    const session = this.#sessions.get(id) ?? { key, lastSeq: 0, end: null, running: null, owner: null };
    this.#sessions.set(id, session);
    const expect = (holds: boolean, rule: string): void => {
      this.#violations.expect(holds, rule, () => `${event.id} ${event.type}`);
    };
    expect(event.session_seq === session.lastSeq + 1, 'the numbers of a session have a gap or go back');
    expect(event.id === `${id}:${event.session_seq}`, 'an event id is not session:number');
    expect(session.end === null, 'something follows a session:end');
    expect((event.type === 'session:start') === (event.session_seq === 1), 'session:start is not the first event');
    session.lastSeq = event.session_seq ?? 0;
    const reaps = event.reason === 'crash' || event.reason === 'reaped';
    expect(!reaps || this.#isGone(session.owner, row, event), "a living owner's session was reaped");
    if (event.type === 'session:start') {
      expect(!this.#open.has(key), 'a session started while another of its conversation was open');
      this.#open.set(key, id);
      session.owner = event.kind === 'chat' ? null : event.instance;
    } else if (event.type === 'session:end') {
      expect(session.running === null, 'a session ended in the middle of a turn');
      session.end = { at: whole(row, 'at'), event };
      if (this.#open.get(key) === id) this.#open.delete(key);
    } else if (event.type === 'agent:start') {
      expect(session.running === null, 'two turns ran at once');
      session.running = String(event.turn_id);
      session.owner = event.instance;
      this.#begun.set(session.running, (this.#begun.get(session.running) ?? 0) + 1);
    } else if (event.type === 'agent:end') {
      expect(session.running === event.turn_id, 'a turn ended that was not running');
      session.running = null;
    }
  }

  /** Whether an owner was lost before this, has left, or found itself that it does not hold the session. */
  #isGone(owner: string | null, row: SqlRow, event: MoiraiEvent): boolean {
    if (owner === null || owner === event.instance || this.#gone.left.has(owner)) return true;
    const loss = this.#gone.lost.get(owner);
    return loss !== undefined && loss.no < whole(row, 'no');
  }
}
