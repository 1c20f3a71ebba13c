/**
 * What gateways say of themselves at `/v1/space/activity` (see docs/http.md), and how this page reads it. A gateway of
 * another version may leave fields out or know phases that this page does not: a missing field gets its default, an
 * unknown phase is kept as the text it is, and `odd` says so.
 */

export const PHASES = ['idle', 'queued', 'thinking', 'tool', 'replying', 'resume_pending', 'suspended'] as const;
export type Phase = (typeof PHASES)[number];

/** The default of a text or a time that may be missing. */
const NONE = null as string | null;

/** The fields of a session with their defaults; times are ISO 8601 UTC. */
const SESSION = {
  id: '',
  key: '',
  kind: 'unknown',
  platform: 'unknown',
  user: NONE,
  title: NONE,
  /** `open`, `resume_pending`, `suspended`, or a word of another version. */
  state: 'open',
  /** One of `PHASES`, or a word of another version. */
  phase: 'idle',
  tool: NONE,
  turn_started_at: NONE,
  queued: 0,
  started_at: '',
  last_activity_at: '',
  last_heartbeat_at: NONE,
  expires_at: NONE,
  message_count: 0,
  tokens: { input: 0, output: 0 },
  /** The gateway that runs its turn or holds it; null while it rests. */
  gateway: NONE,
};

const GATEWAY = {
  id: '',
  name: NONE,
  version: 'unknown',
  host: '',
  /** 0 when the gateway does not tell it. */
  pid: 0,
  /** `starting`, `ready`, `draining`, `stopped`, `up`, `lost`, or a word of another version. */
  state: 'unknown',
  /** Whether it is the gateway that answers. */
  self: false,
  started_at: NONE,
  last_heartbeat_at: NONE,
  sessions: 0,
};

const END = { id: '', reason: 'unknown', cause: NONE, at: '' };

export type SessionView = Readonly<typeof SESSION>;
export type GatewayView = Readonly<typeof GATEWAY>;
export type EndView = Readonly<typeof END>;
export type Snapshot = ReturnType<typeof readSnapshot>;
/** What has changed since the last snapshot or delta. */
export type Delta = ReturnType<typeof readDelta>;

export interface Totals {
  readonly open: number;
  /** Open sessions without a live owner: 0, or something is lost. */
  readonly unowned: number;
}

export function readSnapshot(raw: unknown) {
  const facts = factsOf(raw);
  const sessions = readSessions(facts.sessions);
  const uncounted = facts.totals === undefined ? 'it does not count sessions without an owner' : null;
  return {
    seq: numberOr(facts.seq, 0),
    gateways: readList(facts.gateways, GATEWAY),
    sessions,
    /** Null when the gateway does not count. */
    totals: readTotals(facts.totals),
    /** There are more open sessions than are shown. */
    more: facts.more === true,
    /** What shows that the gateway is of another version; null when nothing does. */
    odd: unknownPhase(sessions) ?? uncounted,
  };
}

export function readDelta(raw: unknown) {
  const facts = factsOf(raw);
  const sessions = readSessions(facts.sessions);
  return {
    seq: numberOr(facts.seq, 0),
    sessions,
    ended: readList(facts.ended, END),
    /** Gone without a known end. */
    removed: listOf(facts.removed).filter((id) => typeof id === 'string'),
    /** Null when they are as before; so are the totals. */
    gateways: Array.isArray(facts.gateways) ? readList(facts.gateways, GATEWAY) : null,
    totals: readTotals(facts.totals),
    odd: unknownPhase(sessions),
  };
}

const KNOWN: ReadonlySet<string> = new Set(PHASES);

function unknownPhase(sessions: readonly SessionView[]): string | null {
  const stranger = sessions.find(({ phase }) => !KNOWN.has(phase));
  return stranger === undefined ? null : `it knows a phase "${stranger.phase}" that this page does not`;
}

function readSessions(raw: unknown): SessionView[] {
  return readList(raw, SESSION).map((session) => {
    session.started_at ||= session.last_activity_at;
    session.last_activity_at ||= session.started_at;
    return session;
  });
}

function readTotals(raw: unknown): Totals | null {
  const { open, unowned } = factsOf(raw);
  return typeof open === 'number' && typeof unowned === 'number' ? { open, unowned } : null;
}

/** The entries of a list that have an id. */
function readList<T extends { id: string }>(raw: unknown, defaults: T): T[] {
  return listOf(raw)
    .map((entry) => readFields(entry, defaults))
    .filter(({ id }) => id !== '');
}

/** Each field as it was said if it has the type of its default, else the default. A default of null stands for a text. */
function readFields<T extends object>(raw: unknown, defaults: T): T {
  const facts = factsOf(raw);
  const read = { ...factsOf(defaults) };
  for (const [name, otherwise] of Object.entries(defaults)) {
    const said = facts[name];
    if (typeof otherwise === 'number') read[name] = numberOr(said, otherwise);
    else if (typeof otherwise === 'object' && otherwise !== null) read[name] = readFields(said, otherwise);
    else if (typeof said === typeof (otherwise ?? '')) read[name] = said;
  }
  return read as T;
}

function factsOf(raw: unknown): Record<string, unknown> {
  return typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>) : {};
}

function listOf(raw: unknown): readonly unknown[] {
  return Array.isArray(raw) ? raw : [];
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}
