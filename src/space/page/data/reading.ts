import { type EndView, PHASES, type SessionView, type Totals } from '../protocol.ts';

/**
 * What gateways say, read with patience. A gateway of another version may leave fields out or know phases that this
 * page does not: what is missing gets a plain default, what is unknown is kept as the text it is, and `odd` says so.
 */

export interface SeenSession extends Omit<SessionView, 'phase' | 'state'> {
  /** One of `PHASES`, or a word of another version. */
  readonly phase: string;
  readonly state: string;
}

export interface SeenGateway {
  readonly id: string;
  readonly name: string | null;
  readonly version: string;
  readonly host: string;
  readonly pid: number | null;
  readonly state: string;
  readonly self: boolean;
  readonly startedAt: string | null;
  readonly lastHeartbeatAt: string | null;
  readonly sessions: number;
}

export interface SeenSnapshot {
  readonly seq: number;
  readonly gateways: readonly SeenGateway[];
  readonly sessions: readonly SeenSession[];
  /** Null when the gateway does not count. */
  readonly totals: Totals | null;
  readonly more: boolean;
  readonly odd: string | null;
}

export interface SeenDelta {
  readonly seq: number;
  readonly sessions: readonly SeenSession[];
  readonly ended: readonly EndView[];
  readonly removed: readonly string[];
  readonly gateways: readonly SeenGateway[] | null;
  readonly totals: Totals | null;
  readonly more: boolean | null;
  readonly odd: string | null;
}

export function readSnapshot(raw: unknown): SeenSnapshot {
  const facts = factsOf(raw);
  const sessions = listOf(facts.sessions).flatMap(readSession);
  return {
    seq: numberOr(facts.seq, 0),
    gateways: listOf(facts.gateways).flatMap(readGateway),
    sessions,
    totals: readTotals(facts.totals),
    more: facts.more === true,
    odd: oddOf(facts, sessions),
  };
}

export function readDelta(raw: unknown): SeenDelta {
  const facts = factsOf(raw);
  const sessions = listOf(facts.sessions).flatMap(readSession);
  return {
    seq: numberOr(facts.seq, 0),
    sessions,
    ended: listOf(facts.ended).flatMap(readEnd),
    removed: listOf(facts.removed).filter((id) => typeof id === 'string'),
    gateways: Array.isArray(facts.gateways) ? facts.gateways.flatMap(readGateway) : null,
    totals: readTotals(facts.totals),
    more: typeof facts.more === 'boolean' ? facts.more : null,
    odd: oddOf(null, sessions),
  };
}

const KNOWN: ReadonlySet<string> = new Set(PHASES);

/** What shows that the gateway is of another version. */
function oddOf(facts: Record<string, unknown> | null, sessions: readonly SeenSession[]): string | null {
  const stranger = sessions.find(({ phase }) => !KNOWN.has(phase));
  if (stranger !== undefined) return `it knows a phase "${stranger.phase}" that this page does not`;
  return facts !== null && facts.totals === undefined ? 'it does not count sessions without an owner' : null;
}

function readSession(raw: unknown): SeenSession[] {
  const facts = factsOf(raw);
  if (typeof facts.id !== 'string' || facts.id === '') return [];
  const tokens = factsOf(facts.tokens);
  const started = textOr(facts.started_at, textOr(facts.last_activity_at, ''));
  return [
    {
      id: facts.id,
      key: textOr(facts.key, ''),
      kind: textOr(facts.kind, 'unknown'),
      platform: textOr(facts.platform, 'unknown'),
      user: textOrNull(facts.user),
      title: textOrNull(facts.title),
      state: textOr(facts.state, 'open'),
      phase: textOr(facts.phase, 'idle'),
      tool: textOrNull(facts.tool),
      turn_started_at: textOrNull(facts.turn_started_at),
      queued: numberOr(facts.queued, 0),
      started_at: started,
      last_activity_at: textOr(facts.last_activity_at, started),
      last_heartbeat_at: textOrNull(facts.last_heartbeat_at),
      expires_at: textOrNull(facts.expires_at),
      message_count: numberOr(facts.message_count, 0),
      tokens: { input: numberOr(tokens.input, 0), output: numberOr(tokens.output, 0) },
      gateway: textOrNull(facts.gateway),
    },
  ];
}

function readGateway(raw: unknown): SeenGateway[] {
  const facts = factsOf(raw);
  if (typeof facts.id !== 'string' || facts.id === '') return [];
  return [
    {
      id: facts.id,
      name: textOrNull(facts.name),
      version: textOr(facts.version, 'unknown'),
      host: textOr(facts.host, ''),
      pid: typeof facts.pid === 'number' ? facts.pid : null,
      state: textOr(facts.state, 'unknown'),
      self: facts.self === true,
      startedAt: textOrNull(facts.started_at),
      lastHeartbeatAt: textOrNull(facts.last_heartbeat_at),
      sessions: numberOr(facts.sessions, 0),
    },
  ];
}

function readEnd(raw: unknown): EndView[] {
  const facts = factsOf(raw);
  if (typeof facts.id !== 'string') return [];
  const reason = textOr(facts.reason, 'unknown');
  return [{ id: facts.id, reason, cause: textOrNull(facts.cause), at: textOr(facts.at, '') }];
}

function readTotals(raw: unknown): Totals | null {
  const { open, unowned } = factsOf(raw);
  return typeof open === 'number' && typeof unowned === 'number' ? { open, unowned } : null;
}

function factsOf(raw: unknown): Record<string, unknown> {
  return typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>) : {};
}

function listOf(raw: unknown): readonly unknown[] {
  return Array.isArray(raw) ? raw : [];
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}
