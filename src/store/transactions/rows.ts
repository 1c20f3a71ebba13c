import type { Origin, Session, Turn } from '../../lifecycle/session.ts';
import {
  columnName,
  flag,
  integer,
  nullableInteger,
  nullableJson,
  nullableText,
  nullableWord,
  Table,
  text,
  word,
} from '../table.ts';
import { type Param, placeholders, type Query, type Row, type Tx } from '../transaction.ts';

const SESSIONS = new Table('sessions', {
  id: text,
  key: text,
  kind: word<Session['kind']>(),
  platform: text,
  userId: nullableText,
  origin: nullableJson<NonNullable<Origin>>(),
  parentId: nullableText,
  lineage: nullableWord<NonNullable<Session['lineage']>>(),
  attached: flag,
  startedAt: integer,
  title: nullableText,
  state: word<Session['state']>(),
  lastActivityAt: integer,
  lastSystemAt: nullableInteger,
  expiresAt: nullableInteger,
  expiresCause: nullableWord<NonNullable<Session['expiresCause']>>(),
  checkAt: nullableInteger,
  endedAt: nullableInteger,
  endReason: nullableWord<NonNullable<Session['endReason']>>(),
  endCause: nullableWord<NonNullable<Session['endCause']>>(),
  messageCount: integer,
  tokensIn: integer,
  tokensOut: integer,
  owner: nullableText,
  epoch: integer,
  lastHeartbeatAt: nullableInteger,
  resumeReason: nullableWord<NonNullable<Session['resumeReason']>>(),
  resumeAt: nullableInteger,
  cuts: integer,
  background: integer,
  seq: integer,
  version: integer,
  lastCommand: nullableText,
  recentCommands: text,
});

export const SELECT_SESSION = SESSIONS.list;

export const INSERT_SESSION = `INSERT INTO sessions (${SESSIONS.list}) VALUES (${placeholders(SESSIONS.fields.length)})`;

export function sessionParams(session: Session): Param[] {
  return SESSIONS.params(session);
}

/** What a message changes; none of it is in an index. */
const BUSY_FIELDS = [
  'lastActivityAt',
  'lastSystemAt',
  'expiresAt',
  'expiresCause',
  'messageCount',
  'tokensIn',
  'tokensOut',
  'owner',
  'epoch',
  'lastHeartbeatAt',
  'cuts',
  'seq',
  'version',
  'lastCommand',
  'recentCommands',
] as const satisfies (keyof Session)[];
/** What else can change. To write it again as it was would write indexes for nothing. */
const QUIET_FIELDS = [
  'title',
  'state',
  'checkAt',
  'endedAt',
  'endReason',
  'endCause',
  'resumeReason',
  'resumeAt',
  'background',
] as const satisfies (keyof Session)[];
const ALL_FIELDS = [...BUSY_FIELDS, ...QUIET_FIELDS];

const update = (fields: readonly (keyof Session)[]): string =>
  `UPDATE sessions SET ${fields.map((field) => `${columnName(field)} = ?`).join(', ')}
   WHERE id = ? AND version = ?`;
const UPDATE_BUSY = update(BUSY_FIELDS);
const UPDATE_ALL = update(ALL_FIELDS);

/** Writes a session by compare-and-set: changes one row, or none when somebody else wrote it since it was read. */
export function sessionUpdate(before: Session, after: Session): Query {
  const quiet = QUIET_FIELDS.every((field) => before[field] === after[field]);
  const params = SESSIONS.params(after, quiet ? BUSY_FIELDS : ALL_FIELDS);
  params.push(after.id, before.version);
  return { sql: quiet ? UPDATE_BUSY : UPDATE_ALL, params, returns: 'count' };
}

/** Runs a statement that selects `SELECT_SESSION`. */
export function querySessions(sql: string, ...params: Param[]): Tx<Session[]> {
  return SESSIONS.selectAs(sql, ...params);
}

export function selectingSessions(sql: string, params: readonly Param[]): Query {
  return SESSIONS.queryAs(sql, params);
}

/** The answer to `selectingSessions`. */
export function toSessions(rows: readonly Row[]): Session[] {
  return SESSIONS.rows(rows);
}

/** The lifecycle needs the beginning of a text only; a queued message of megabytes is not read for every transition. */
export const TURN_TEXT_SEEN = 600;

const TURNS = new Table('turns', {
  id: text,
  sessionId: text,
  byActor: word<Turn['by']>(),
  state: word<Turn['state']>(),
  outcome: nullableWord<NonNullable<Turn['outcome']>>(),
  text,
  createdAt: integer,
  startedAt: nullableInteger,
  endedAt: nullableInteger,
  cuts: integer,
});

export const SELECT_TURN = TURNS.list.replace(/\btext\b/, `substr(text, 1, ${TURN_TEXT_SEEN}) AS text`);

export function toTurn(row: Row): Turn {
  const { byActor: by, ...turn } = TURNS.readNamed(row);
  return { ...turn, by };
}
