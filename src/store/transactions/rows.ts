import type { Origin, Session, Turn } from '../../lifecycle/session.ts';
import {
  nullableNumber,
  nullableText,
  numberOf,
  type Param,
  type Query,
  type Row,
  type Tx,
  textOf,
  type Values,
} from '../transaction.ts';

/** Column of each field of a session; the order is that of inserts and of `toSession`. */
const SESSION_COLUMNS: Readonly<Record<keyof Session, string>> = {
  id: 'id',
  key: 'key',
  kind: 'kind',
  platform: 'platform',
  userId: 'user_id',
  origin: 'origin',
  parentId: 'parent_id',
  lineage: 'lineage',
  attached: 'attached',
  startedAt: 'started_at',
  title: 'title',
  state: 'state',
  lastActivityAt: 'last_activity_at',
  lastSystemAt: 'last_system_at',
  expiresAt: 'expires_at',
  expiresCause: 'expires_cause',
  checkAt: 'check_at',
  endedAt: 'ended_at',
  endReason: 'end_reason',
  endCause: 'end_cause',
  messageCount: 'message_count',
  tokensIn: 'tokens_in',
  tokensOut: 'tokens_out',
  owner: 'owner',
  epoch: 'epoch',
  lastHeartbeatAt: 'last_heartbeat_at',
  resumeReason: 'resume_reason',
  resumeAt: 'resume_at',
  cuts: 'cuts',
  background: 'background',
  seq: 'seq',
  version: 'version',
  lastCommand: 'last_command',
  recentCommands: 'recent_commands',
};
const SESSION_FIELDS = Object.keys(SESSION_COLUMNS) as (keyof Session)[];

const columns = (alias: string): string =>
  SESSION_FIELDS.map((field) => `${alias}${SESSION_COLUMNS[field]}`).join(', ');
export const SELECT_SESSION = columns('');
export const INSERT_SESSION = `INSERT INTO sessions (${SELECT_SESSION}) VALUES (${SESSION_FIELDS.map(() => '?').join(', ')})`;

export function sessionParams(session: Session): Param[] {
  return SESSION_FIELDS.map((field) => toParam(session[field]));
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
  `UPDATE sessions SET ${fields.map((field) => `${SESSION_COLUMNS[field]} = ?`).join(', ')}
   WHERE id = ? AND version = ?`;
const UPDATE_BUSY = update(BUSY_FIELDS);
const UPDATE_ALL = update(ALL_FIELDS);

/** Writes a session by compare-and-set: changes one row, or none when somebody else wrote it since it was read. */
export function sessionUpdate(before: Session, after: Session): Query {
  const quiet = QUIET_FIELDS.every((field) => before[field] === after[field]);
  const params = (quiet ? BUSY_FIELDS : ALL_FIELDS).map((field) => toParam(after[field]));
  params.push(after.id, before.version);
  return { sql: quiet ? UPDATE_BUSY : UPDATE_ALL, params, returns: 'count' };
}

function toParam(value: Session[keyof Session]): Param {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return value;
}

/** Runs a statement that selects `SELECT_SESSION`. */
export function* querySessions(sql: string, ...params: Param[]): Tx<Session[]> {
  const [rows = []] = yield [selectingSessions(sql, params)];
  return toSessions(rows);
}

export function selectingSessions(sql: string, params: readonly Param[]): Query {
  return { sql, params, returns: 'values' };
}

/** The answer to `selectingSessions`. */
export function toSessions(rows: readonly Row[]): Session[] {
  return (rows as unknown as readonly Values[]).map(toSession);
}

/** Takes the values in the order of `SESSION_COLUMNS`. */
function toSession(values: Values): Session {
  let i = 0;
  return {
    id: values[i++] as string,
    key: values[i++] as string,
    kind: values[i++] as Session['kind'],
    platform: values[i++] as string,
    userId: values[i++] as string | null,
    origin: originOf(values[i++] as string | null),
    parentId: values[i++] as string | null,
    lineage: values[i++] as Session['lineage'],
    attached: values[i++] === 1,
    startedAt: values[i++] as number,
    title: values[i++] as string | null,
    state: values[i++] as Session['state'],
    lastActivityAt: values[i++] as number,
    lastSystemAt: values[i++] as number | null,
    expiresAt: values[i++] as number | null,
    expiresCause: values[i++] as Session['expiresCause'],
    checkAt: values[i++] as number | null,
    endedAt: values[i++] as number | null,
    endReason: values[i++] as Session['endReason'],
    endCause: values[i++] as Session['endCause'],
    messageCount: values[i++] as number,
    tokensIn: values[i++] as number,
    tokensOut: values[i++] as number,
    owner: values[i++] as string | null,
    epoch: values[i++] as number,
    lastHeartbeatAt: values[i++] as number | null,
    resumeReason: values[i++] as Session['resumeReason'],
    resumeAt: values[i++] as number | null,
    cuts: values[i++] as number,
    background: values[i++] as number,
    seq: values[i++] as number,
    version: values[i++] as number,
    lastCommand: values[i++] as string | null,
    recentCommands: values[i++] as string,
  };
}

function originOf(json: string | null): Origin {
  return json === null ? null : (JSON.parse(json) as Origin);
}

/** The lifecycle needs the beginning of a text only; a queued message of megabytes is not read for every transition. */
export const TURN_TEXT_SEEN = 600;
export const SELECT_TURN = `id, session_id, by_actor, state, outcome, substr(text, 1, ${TURN_TEXT_SEEN}) AS text, created_at, started_at, ended_at, cuts`;

export function toTurn(row: Row): Turn {
  return {
    id: textOf(row, 'id'),
    sessionId: textOf(row, 'session_id'),
    by: textOf(row, 'by_actor') as Turn['by'],
    state: textOf(row, 'state') as Turn['state'],
    outcome: nullableText(row, 'outcome') as Turn['outcome'],
    text: textOf(row, 'text'),
    createdAt: numberOf(row, 'created_at'),
    startedAt: nullableNumber(row, 'started_at'),
    endedAt: nullableNumber(row, 'ended_at'),
    cuts: numberOf(row, 'cuts'),
  };
}
