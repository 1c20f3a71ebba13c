import type { Origin, Session, Turn } from '../../lifecycle/session.ts';
import type { Dialect } from '../dialect.ts';
import {
  columnName,
  flag,
  integer,
  nullableInteger,
  nullableJson,
  nullableText,
  nullableWord,
  selectedAs,
  Table,
  text,
  word,
} from '../table.ts';
import type { Query } from '../transaction.ts';

export const SESSIONS = new Table('sessions', {
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
  suspendReason: nullableWord<NonNullable<Session['suspendReason']>>(),
  cuts: integer,
  background: integer,
  seq: integer,
  version: integer,
  lastCommand: nullableText,
  recentCommands: text,
});

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
  'lastCommand',
  'recentCommands',
] as const satisfies (keyof Session)[];
/** What else can change. To write it again as it was would write indexes for nothing. */
const QUIET_FIELDS = [
  'origin',
  'title',
  'state',
  'checkAt',
  'endedAt',
  'endReason',
  'endCause',
  'resumeReason',
  'resumeAt',
  'suspendReason',
  'background',
] as const satisfies (keyof Session)[];
const ALL_FIELDS = [...BUSY_FIELDS, ...QUIET_FIELDS];

const update = (fields: readonly (keyof Session)[]): string =>
  `UPDATE sessions SET ${fields.map((field) => `${columnName(field)} = ?`).join(', ')}, ${versionAfter('?', 'CAST(? AS BIGINT)')}
   WHERE id = ?`;
const UPDATE_BUSY = update(BUSY_FIELDS);
const UPDATE_ALL = update(ALL_FIELDS);

/** Compare-and-set: of a session that changed since it was read the version becomes null, which the database refuses. */
function versionAfter(before: string, after: string): string {
  return `version = CASE WHEN sessions.version = ${before} THEN ${after} END`;
}

/** A session as it was read, null for one that starts, and as it is now. */
export interface SessionChange {
  readonly before: Session | null;
  readonly after: Session;
}

/** Writes sessions, all of them by one statement where statements cost. */
export function saveSessions({ freshRows }: Dialect, changes: readonly SessionChange[]): Query[] {
  const updates = changes.flatMap(({ before, after }) => (before === null ? [] : [{ before, after }]));
  if (freshRows === null || updates.length < 2) return changes.map(saveSession);
  const fields = ALL_FIELDS.filter((field) => updates.some(({ before, after }) => before[field] !== after[field]));
  const columns = ['id' as const, ...fields];
  const rows = updates.map(({ before, after }) => {
    const values = SESSIONS.params(after, columns);
    const row = Object.fromEntries(columns.map((field, i) => [columnName(field), values[i]]));
    return { ...row, read_version: before.version, new_version: after.version };
  });
  const table = freshRows([
    ...columns.map((field) => [columnName(field), SESSIONS.kindOf(field)] as const),
    ['read_version', 'integer'],
    ['new_version', 'integer'],
  ]);
  const set = fields.map((field) => `${columnName(field)} = fresh.${columnName(field)}`);
  set.push(versionAfter('fresh.read_version', 'fresh.new_version'));
  const sql = `UPDATE sessions SET ${set.join(', ')} FROM ${table} WHERE sessions.id = fresh.id`;
  return [...changes.filter(({ before }) => before === null).map(saveSession), { sql, params: [JSON.stringify(rows)] }];
}

function saveSession({ before, after }: SessionChange): Query {
  if (before === null) return SESSIONS.insert(after);
  const quiet = QUIET_FIELDS.every((field) => before[field] === after[field]);
  const params = SESSIONS.params(after, quiet ? BUSY_FIELDS : ALL_FIELDS);
  params.push(before.version, after.version, after.id);
  return { sql: quiet ? UPDATE_BUSY : UPDATE_ALL, params };
}

/** The lifecycle needs the beginning of a text only; a queued message of megabytes is not read for every transition. */
export const TURN_TEXT_SEEN = 600;

export const TURN_COLUMNS = {
  id: text,
  sessionId: text,
  by: selectedAs('by_actor', word<Turn['by']>()),
  userId: nullableText,
  userName: nullableText,
  state: word<Turn['state']>(),
  outcome: nullableWord<NonNullable<Turn['outcome']>>(),
  text: selectedAs(`substr(text, 1, ${TURN_TEXT_SEEN})`, text),
  createdAt: integer,
  startedAt: nullableInteger,
  endedAt: nullableInteger,
  cuts: integer,
};

/** Turns as the lifecycle sees them. */
export const TURNS = new Table('turns', TURN_COLUMNS);
