import type { Origin, Session, Turn } from '../../lifecycle/session.ts';
import { nullableNumber, nullableText, numberOf, type Param, type Row, textOf } from '../transaction.ts';

/** Column of each field of a session; order is that of the INSERT. */
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

/** The SET clause and its values for what changed: untouched columns leave their indexes alone. */
export function sessionChanges(before: Session, after: Session): { set: string; params: Param[] } {
  const changed = SESSION_FIELDS.filter((field) => before[field] !== after[field]);
  return {
    set: changed.map((field) => `${SESSION_COLUMNS[field]} = ?`).join(', '),
    params: changed.map((field) => toParam(after[field])),
  };
}

function toParam(value: Session[keyof Session]): Param {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return value;
}

export function toSession(row: Row): Session {
  const origin = nullableText(row, 'origin');
  return {
    id: textOf(row, 'id'),
    key: textOf(row, 'key'),
    kind: textOf(row, 'kind') as Session['kind'],
    platform: textOf(row, 'platform'),
    userId: nullableText(row, 'user_id'),
    origin: origin === null ? null : (JSON.parse(origin) as Origin),
    parentId: nullableText(row, 'parent_id'),
    lineage: nullableText(row, 'lineage') as Session['lineage'],
    attached: row.attached === 1,
    startedAt: numberOf(row, 'started_at'),
    title: nullableText(row, 'title'),
    state: textOf(row, 'state') as Session['state'],
    lastActivityAt: numberOf(row, 'last_activity_at'),
    lastSystemAt: nullableNumber(row, 'last_system_at'),
    expiresAt: nullableNumber(row, 'expires_at'),
    expiresCause: nullableText(row, 'expires_cause') as Session['expiresCause'],
    checkAt: nullableNumber(row, 'check_at'),
    endedAt: nullableNumber(row, 'ended_at'),
    endReason: nullableText(row, 'end_reason') as Session['endReason'],
    endCause: nullableText(row, 'end_cause') as Session['endCause'],
    messageCount: numberOf(row, 'message_count'),
    tokensIn: numberOf(row, 'tokens_in'),
    tokensOut: numberOf(row, 'tokens_out'),
    owner: nullableText(row, 'owner'),
    epoch: numberOf(row, 'epoch'),
    lastHeartbeatAt: nullableNumber(row, 'last_heartbeat_at'),
    resumeReason: nullableText(row, 'resume_reason') as Session['resumeReason'],
    resumeAt: nullableNumber(row, 'resume_at'),
    cuts: numberOf(row, 'cuts'),
    background: numberOf(row, 'background'),
    seq: numberOf(row, 'seq'),
    version: numberOf(row, 'version'),
    lastCommand: nullableText(row, 'last_command'),
    recentCommands: textOf(row, 'recent_commands'),
  };
}

/** The lifecycle needs the beginning of a text only; a queued message of megabytes is not read for every transition. */
export const SELECT_TURN =
  'id, session_id, by_actor, state, outcome, substr(text, 1, 600) AS text, created_at, started_at, ended_at, cuts';

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
