import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import type { Log } from './check-log.ts';
import type { Tables } from './check-store.ts';
import { type Fact, type JournalLine, readAcks, type Seen } from './journal.ts';
import { whole } from './sql.ts';
import type { Violations } from './violations.ts';

export interface AckFigures {
  acks: number;
  refused: number;
  boots: number;
  readonly byOp: Map<string, number>;
  readonly byCode: Map<string, number>;
}

/** The events that acknowledged writes speak of. */
export function wantedEvents(directory: string): Set<string> {
  const ids = new Set<string>();
  for (const line of readAcks(directory)) {
    if (line.line !== 'ack') continue;
    for (const fact of line.facts) if (fact.is === 'event') ids.add(`${fact.session}:${fact.seq}`);
  }
  return ids;
}

/** Everything that was acknowledged is there, and nothing that was refused. */
export function checkAcks(directory: string, tables: Tables, log: Log, violations: Violations): AckFigures {
  const figures: AckFigures = { acks: 0, refused: 0, boots: 0, byOp: new Map(), byCode: new Map() };
  const checker = new AckChecker(tables, log, violations);
  for (const line of readAcks(directory)) {
    checker.check(line);
    if (line.line === 'ack') {
      figures.acks++;
      increase(figures.byOp, line.op);
    } else if (line.line === 'refused') {
      figures.refused++;
      increase(figures.byCode, line.code);
    } else if (line.line === 'booted') figures.boots++;
  }
  checker.checkBegun();
  checker.checkRowHistories();
  return figures;
}

class AckChecker {
  readonly #tables: Tables;
  readonly #log: Log;
  readonly #violations: Violations;
  readonly #present: ReadonlySet<string>;
  /** What was seen of each session at each of its versions. */
  readonly #histories = new Map<string, Map<number, Seen>>();
  /** How often each turn was said to have begun. */
  readonly #begun = new Map<string, number>();
  readonly #epochs = new Map<string, string>();

  constructor(tables: Tables, log: Log, violations: Violations) {
    this.#tables = tables;
    this.#log = log;
    this.#violations = violations;
    this.#present = tagsIn(tables, log);
  }

  check(line: JournalLine): void {
    if (line.line === 'wrong') this.#violations.add('a worker saw something wrong', line.what);
    else if (line.line === 'refused') {
      this.#violations.expect(!this.#present.has(line.tag), 'a refused write left something behind', () => {
        return `${line.op} ${line.tag}, refused as ${line.code}`;
      });
    } else if (line.line === 'ack') {
      for (const fact of line.facts) {
        this.#violations.expect(this.#holds(fact), 'an acknowledged write is absent', () => {
          return `${line.op}: ${JSON.stringify(fact)}`;
        });
      }
      for (const seen of line.seen) this.#note(seen);
    }
  }

  /** Each beginning of a turn that was acknowledged is in the log. */
  checkBegun(): void {
    for (const [turn, times] of this.#begun) {
      const logged = this.#log.begun.get(turn) ?? 0;
      this.#violations.expect(logged >= times, 'an acknowledged write is absent', () => {
        return `turn ${turn} began ${times} times, of which ${logged} are in the log`;
      });
    }
  }

  /** A row's history is one line: a version is one command's, epochs and numbers never fall. */
  checkRowHistories(): void {
    for (const [id, versions] of this.#histories) {
      const line = [...versions.values()].sort((a, b) => a.version - b.version);
      line.forEach((seen, i) => {
        const next = line[i + 1];
        if (next === undefined) return;
        this.#violations.expect(
          next.epoch >= seen.epoch,
          'an epoch fell',
          () => `${id}: ${JSON.stringify([seen, next])}`,
        );
        this.#violations.expect(next.seq >= seen.seq, 'a session was numbered back', () => id);
        const passed = seen.owner === next.owner || next.owner === null || next.epoch > seen.epoch;
        this.#violations.expect(passed, 'a session changed hands at the same epoch', () => {
          return `${id}: ${JSON.stringify([seen, next])}`;
        });
      });
      this.#checkLast(id, line.at(-1));
    }
  }

  #checkLast(id: string, last: Seen | undefined): void {
    const row = this.#tables.sessions.get(id);
    if (row === undefined || last === undefined) {
      this.#violations.add('an acknowledged write is absent', `session ${id}`);
      return;
    }
    const { version, epoch, seq, command } = last;
    const newer = whole(row, 'version') > version;
    const same = whole(row, 'version') === version && row.last_command === command;
    const kept = (newer || same) && whole(row, 'epoch') >= epoch && whole(row, 'seq') >= seq;
    this.#violations.expect(kept, 'a row is older than what was acknowledged', () => `${id}: ${JSON.stringify(last)}`);
  }

  #note(seen: Seen): void {
    const versions = this.#histories.get(seen.id) ?? new Map<number, Seen>();
    this.#histories.set(seen.id, versions);
    const known = versions.get(seen.version);
    const same = known === undefined || (known.command === seen.command && known.epoch === seen.epoch);
    this.#violations.expect(same, 'two commands made one version of a session', () => {
      return `${seen.id}: ${JSON.stringify([known, seen])}`;
    });
    versions.set(seen.version, seen);
  }

  #holds(fact: Fact): boolean {
    const { sessions, turns, turnsByRef, messages, deliveries } = this.#tables;
    switch (fact.is) {
      case 'started': {
        const row = sessions.get(fact.session);
        return row?.key === fact.key && row.parent_id === fact.parent;
      }
      case 'ended': {
        const row = sessions.get(fact.session);
        const end = this.#log.sessions.get(fact.session)?.end?.event;
        const next = fact.successor === undefined || end?.successor_id === fact.successor;
        return row?.end_reason === fact.reason && row.end_cause === fact.cause && end !== undefined && next;
      }
      case 'received':
        return turnsByRef.get(fact.ref)?.id === fact.turn;
      case 'begun': {
        this.#begun.set(fact.turn, (this.#begun.get(fact.turn) ?? 0) + 1);
        const epoch = `${fact.session} ${fact.epoch}`;
        const other = this.#epochs.get(epoch);
        this.#violations.expect(
          other === undefined,
          'two turns began at one epoch',
          () => `${epoch}: ${other}, ${fact.turn}`,
        );
        this.#epochs.set(epoch, fact.turn);
        return turns.has(fact.turn);
      }
      case 'over': {
        const row = turns.get(fact.turn);
        return row?.state === 'over' && row.outcome === fact.outcome && row.response === fact.response;
      }
      case 'message':
        return messages.get(`${fact.session}:${fact.position}`) === fact.text;
      case 'delivery':
        return deliveries.get(fact.id)?.turn_id === fact.turn;
      case 'settled':
        return deliveries.get(fact.id)?.state === fact.state;
      case 'event': {
        const event = this.#log.wanted.get(`${fact.session}:${fact.seq}`);
        return event?.type === fact.type && hasFields(event, fact.has ?? {});
      }
    }
  }
}

function hasFields(event: MoiraiEvent, fields: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(fields).every(([name, value]) => event[name] === value);
}

/** Everything in the store that tells which command wrote it. */
function tagsIn(tables: Tables, log: Log): Set<string> {
  const tags = new Set(log.tags);
  for (const message of tables.messages.values()) tags.add(message.split('/')[0] ?? '');
  for (const id of tables.deliveries.keys()) tags.add(id.split('/')[0] ?? '');
  for (const ref of tables.turnsByRef.keys()) tags.add(ref);
  for (const { response } of tables.turns.values()) if (response !== null) tags.add(String(response));
  for (const { title } of tables.sessions.values()) if (title !== null) tags.add(String(title));
  return tags;
}

function increase(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
