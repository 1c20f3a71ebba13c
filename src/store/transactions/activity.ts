import type { Session } from '../../lifecycle/session.ts';
import type { EndCause, EndReason, TurnState } from '../../lifecycle/states.ts';
import { integer, nullableInteger, nullableJson, nullableText, type RowOf, Table, text, word } from '../table.ts';
import type { Tx, TxContext } from '../transaction.ts';
import { type Instance, listInstances } from './liveness.ts';
import { lastSeq, sequenceEvents } from './reading.ts';
import { SESSIONS } from './rows.ts';

/** How the unfinished turns of one session stand. */
export interface TurnsUnderWay {
  readonly queued: number;
  readonly cut: number;
  /** When the running turn began; null when none runs. */
  readonly runningSince: number | null;
  /** When its owner last said that it lives. */
  readonly beatAt: number | null;
}

/** By session id; sessions without unfinished turns are not in it. */
export type UnderWay = Readonly<Record<string, TurnsUnderWay>>;

export interface Activity {
  readonly seq: number;
  /** Sessions that have not ended, the last active first. */
  readonly sessions: readonly Session[];
  readonly turns: UnderWay;
  /** How many are open in all: more than were asked for, perhaps. */
  readonly open: number;
}

/** The most sessions that one look gives. */
const MOST_SESSIONS = 50_000;

/**
 * What goes on, with the number of the newest event before it: who follows the log from there misses nothing, and may
 * hear of something that the snapshot shows already.
 */
export function* activity(ctx: TxContext, args: { limit: number }): Tx<Activity> {
  const seq = yield* lastSeq(ctx, {});
  const sessions = yield* SESSIONS.select(
    "WHERE state <> 'ended' ORDER BY last_activity_at DESC, id DESC LIMIT ?",
    Math.max(1, Math.min(args.limit, MOST_SESSIONS)),
  );
  const turns = yield* underWay();
  const { open } = yield* openSessions();
  return { seq, sessions, turns, open };
}

export interface Ended {
  /** The number of the event that tells of it. */
  readonly seq: number;
  readonly id: string;
  readonly key: string;
  readonly reason: EndReason;
  readonly cause: EndCause | null;
  readonly at: number;
}

/** What has happened since a number, in few words. */
export interface Pulse {
  readonly seq: number;
  /** The sessions that events tell of; null when there are more events than were asked for. */
  readonly touched: readonly string[] | null;
  readonly ended: readonly Ended[];
  readonly turns: UnderWay;
  readonly instances: readonly Instance[];
  /** How many sessions are open, and the sum of their versions, which grows with every change; null unless asked for. */
  readonly open: { readonly open: number; readonly versions: number } | null;
}

/**
 * Costs what has happened and what is under way, not what there is: for whoever looks again and again. `check` counts
 * the open sessions, which costs what is open.
 */
export function* pulse(ctx: TxContext, args: { after: number; limit: number; check: boolean }): Tx<Pulse> {
  yield* sequenceEvents(ctx);
  const seq = ctx.dialect.seqColumn;
  const rows = yield* NEWS.selectAs(
    `SELECT ${seq} AS seq, session_id, CASE WHEN type = 'session:end' THEN body END AS body FROM events
     WHERE ${seq} > ? ORDER BY ${seq} LIMIT ?`,
    args.after,
    args.limit + 1,
  );
  const tooMany = rows.length > args.limit;
  const touched = new Set(rows.map(({ sessionId }) => sessionId).filter((id) => id !== null));
  return {
    seq: rows.at(-1)?.seq ?? args.after,
    touched: tooMany ? null : [...touched],
    ended: rows.flatMap((row) => (row.end === null ? [] : [endOf(row.seq, row.end)])),
    turns: yield* underWay(),
    instances: yield* listInstances(ctx, {}),
    open: args.check ? yield* openSessions() : null,
  };
}

/** An event, of which only the end of a session is read. */
const NEWS = new Table('events', {
  seq: integer,
  sessionId: nullableText,
  end: nullableJson<{
    session_id: string;
    session_key: string;
    reason: EndReason;
    cause: EndCause | null;
    at: string;
  }>(),
});

function endOf(seq: number, end: NonNullable<RowOf<typeof NEWS>['end']>): Ended {
  const { session_id: id, session_key: key, reason, cause, at } = end;
  return { seq, id, key, reason, cause, at: Date.parse(at) };
}

const UNFINISHED = new Table('turns', {
  sessionId: text,
  state: word<TurnState>(),
  turns: integer,
  since: nullableInteger,
  beatAt: nullableInteger,
});

function* underWay(): Tx<UnderWay> {
  const rows = yield* UNFINISHED.selectAs(
    `SELECT t.session_id, t.state, count(*), min(t.started_at), max(s.last_heartbeat_at)
     FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.state <> 'over' GROUP BY t.session_id, t.state`,
  );
  const turns: Record<string, TurnsUnderWay> = {};
  for (const row of rows) {
    const others = turns[row.sessionId] ?? { queued: 0, cut: 0, runningSince: null };
    turns[row.sessionId] = { ...others, ...inState(row), beatAt: row.beatAt };
  }
  return turns;
}

function inState({ state, turns, since }: RowOf<typeof UNFINISHED>): Partial<TurnsUnderWay> {
  if (state === 'running') return { runningSince: since };
  return state === 'queued' ? { queued: turns } : { cut: turns };
}

const OPEN = new Table('sessions', { open: integer, versions: integer });

function* openSessions(): Tx<RowOf<typeof OPEN>> {
  const [counted] = yield* OPEN.selectAs(
    "SELECT count(*), coalesce(sum(version), 0) FROM sessions WHERE state <> 'ended'",
  );
  return counted ?? { open: 0, versions: 0 };
}

/** Sessions by their ids, in no order; those that are gone are left out. */
export function* sessionsById(ctx: TxContext, args: { ids: readonly string[] }): Tx<Session[]> {
  return yield* SESSIONS.select(`WHERE id IN (${ctx.dialect.listed})`, JSON.stringify(args.ids));
}

export interface TimelineSpan {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
}

/** How many sessions began and ended in each step of a span of time. */
export interface Timeline {
  readonly started: readonly number[];
  readonly ended: Readonly<Record<string, readonly number[]>>;
}

/** Costs what began and ended in the span. (Engines differ in whether they divide whole numbers into whole ones.) */
export function* timeline(_ctx: TxContext, { from, to, stepMs }: TimelineSpan): Tx<Timeline> {
  const slots = Math.ceil((to - from) / stepMs);
  const started = Array.from({ length: slots }, () => 0);
  const starts = yield* STARTS.selectAs(
    `SELECT CAST((started_at - ?) / ? AS BIGINT), count(*) FROM sessions WHERE started_at >= ? AND started_at < ?
     GROUP BY 1`,
    ...[from, stepMs, from, to],
  );
  for (const { slot, sessions } of starts) started[slot] = sessions;
  const ended: Record<string, number[]> = {};
  const ends = yield* ENDS.selectAs(
    `SELECT CAST((ended_at - ?) / ? AS BIGINT), count(*), end_reason FROM sessions
     WHERE ended_at IS NOT NULL AND ended_at >= ? AND ended_at < ?
     GROUP BY 1, end_reason`,
    ...[from, stepMs, from, to],
  );
  for (const { slot, sessions, endReason } of ends) {
    ended[endReason] ??= Array.from({ length: slots }, () => 0);
    ended[endReason][slot] = sessions;
  }
  return { started, ended };
}

const STARTS = new Table('sessions', { slot: integer, sessions: integer });
const ENDS = new Table('sessions', { slot: integer, sessions: integer, endReason: text });
