import { type MoiraiEvent, withoutWords } from '../../lifecycle/events.ts';
import type { Session } from '../../lifecycle/session.ts';
import { integer, json, selectedAs, selectValues, Table, text } from '../table.ts';
import type { Param, Query, Tx, TxContext } from '../transaction.ts';
import { lockSession } from './sessions.ts';

/*
 * What was said in a session that is deleted goes with it, also out of what stays: its events, and the records of who
 * failed at them. A subscriber that has not received an event yet gets it without its words: whoever deletes a session
 * does not want to wait for a receiver that is down.
 */

type Erased = Pick<Session, 'id' | 'key' | 'startedAt' | 'endedAt'>;

/** Takes the words of a session that has ended, or has just been ended at `ctx.now`, out of everything but its own rows. */
export function* eraseWords(ctx: TxContext, session: Erased): Tx<void> {
  const { id, key, startedAt, endedAt } = session;
  yield* eraseEvents(id, key);
  const during: Param[] = [key, startedAt, endedAt ?? ctx.now];
  yield [
    // What it told other conversations and nobody has read, and what was told to it.
    { sql: 'DELETE FROM told WHERE delivery_id IN (SELECT id FROM deliveries WHERE session_id = ?)', params: [id] },
    { sql: 'DELETE FROM told WHERE session_key = ? AND at >= ? AND at <= ?', params: during },
    { sql: 'DELETE FROM commands WHERE session_key = ? AND accepted_at >= ? AND accepted_at <= ?', params: during },
  ];
}

const EVENTS = new Table('events', { no: integer, event: selectedAs('body', json<MoiraiEvent>()) });
const EVENTS_AT_ONCE = 500;
const OF_SESSION = 'WHERE session_key = ? AND session_id = ? AND no > ? ORDER BY no LIMIT ?';
/** Of its conversation: what a hook says of one event may be in the record of the next. */
const FAILURES: readonly string[] = [
  "UPDATE lanes SET error = '' WHERE queue IN (SELECT 'events/' || name FROM subscribers) AND key = ? AND error IS NOT NULL",
  "UPDATE dead_letters SET error = '' WHERE subscriber IN (SELECT name FROM subscribers) AND session_key = ?",
];

export function* eraseEvents(sessionId: string, key: string): Tx<void> {
  yield FAILURES.map((sql) => ({ sql, params: [key] }));
  for (let after = 0; ; ) {
    const found = yield* EVENTS.select(OF_SESSION, key, sessionId, after, EVENTS_AT_ONCE);
    const changes = found.flatMap(({ no, event }): Query[] => {
      const silent = withoutWords(event);
      if (silent === event) return [];
      return [{ sql: 'UPDATE events SET body = ? WHERE no = ?', params: [JSON.stringify(silent), no] }];
    });
    if (changes.length > 0) yield changes;
    after = found.at(-1)?.no ?? 0;
    if (found.length < EVENTS_AT_ONCE) return;
  }
}

/** The sessions that worked for a session, and for those, and so on: what they were told are its words. */
export function* lockDescendants(ctx: TxContext, sessionId: string): Tx<Session[]> {
  const found: Session[] = [];
  for (let parents = [sessionId]; parents.length > 0; ) {
    const children = yield* selectValues(
      text,
      `SELECT id FROM sessions WHERE kind = 'child' AND parent_id IN (${ctx.dialect.listed}) ORDER BY id`,
      JSON.stringify(parents),
    );
    for (const id of children) found.push((yield* lockSession(ctx, id)).session);
    parents = children;
  }
  return found;
}
