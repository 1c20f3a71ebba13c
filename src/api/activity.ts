import { createHash } from 'node:crypto';
import { isoTime } from '../engine/views.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Instance } from '../store/transactions/liveness.ts';
import type { Activity, TurnsUnderWay } from '../store/transactions/reading.ts';
import type { ApiParts } from './api.ts';
import type { ApiDesk } from './desk.ts';

export const PHASES = ['idle', 'queued', 'thinking', 'tool', 'replying', 'resume_pending', 'suspended'] as const;
type Phase = (typeof PHASES)[number];

/** The most sessions a snapshot shows: those active last. */
const MOST_SESSIONS = 500;
/** Gateways lost longer ago than this are history. */
const LOST_SHOWN_MS = 3_600_000;

export interface Snapshot {
  readonly body: ReturnType<typeof draw>;
  readonly etag: string;
}

/**
 * What goes on, for whoever draws it. One drawing at a time, and all who ask while it is made share the next one: so many
 * watchers cost no more than one, and each sees what had happened when he asked, his own doings among it.
 */
export class ActivityBoard {
  readonly #parts: ApiParts;
  #current: Promise<unknown> = Promise.resolve();
  #next: Promise<Snapshot> | null = null;

  constructor(parts: ApiParts) {
    this.#parts = parts;
  }

  snapshot(): Promise<Snapshot> {
    this.#next ??= this.#draw(this.#current);
    return this.#next;
  }

  async #draw(before: Promise<unknown>): Promise<Snapshot> {
    await before.catch(() => undefined); // Who asked for that one hears why it failed.
    const drawing = this.#read();
    this.#current = drawing;
    this.#next = null;
    return drawing;
  }

  async #read(): Promise<Snapshot> {
    const { engine, desk } = this.#parts;
    const activity = await engine.store.read('activity', { limit: MOST_SESSIONS });
    const instances = await engine.store.read('listInstances', {});
    const { state } = await desk.readiness();
    const body = draw(activity, instances, desk, { id: engine.instance, state });
    const etag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`;
    return { body, etag };
  }
}

interface Here {
  readonly id: string;
  readonly state: string;
}

function draw(activity: Activity, instances: readonly Instance[], desk: ApiDesk, here: Here) {
  const alive = new Set(instances.filter(isAlive).map(({ id }) => id));
  const now = Date.now();
  return {
    seq: activity.seq,
    gateways: instances
      .filter((one) => isAlive(one) || now - (one.lostAt ?? one.heartbeatAt) < LOST_SHOWN_MS)
      .map((one) => gatewayView(one, here)),
    sessions: activity.sessions.map((session) => {
      const turns = activity.turns[session.id];
      const doing = session.owner === here.id ? (desk.doing?.(session.id) ?? null) : null;
      const phase = phaseOf(session, turns, alive, doing?.phase ?? 'thinking');
      const tool = phase === 'tool' ? (doing?.tool ?? null) : null;
      return sessionView(session, turns, { phase, tool });
    }),
    more: activity.more,
  };
}

function isAlive({ state, expired }: Instance): boolean {
  return state === 'up' && !expired;
}

/** A running turn whose owner is gone waits to be resumed, also before anybody has noticed. */
function phaseOf(
  { state, owner }: Session,
  turns: TurnsUnderWay | undefined,
  alive: ReadonlySet<string>,
  doing: Phase,
): Phase {
  if (state === 'suspended' || state === 'resume_pending') return state;
  if (turns === undefined) return 'idle';
  if (turns.runningSince !== null) return owner !== null && alive.has(owner) ? doing : 'resume_pending';
  return turns.queued > 0 ? 'queued' : 'idle';
}

function gatewayView(instance: Instance, here: Here) {
  const self = instance.id === here.id;
  return {
    id: instance.id,
    name: instance.name,
    version: instance.version,
    host: instance.host,
    pid: instance.pid,
    state: isAlive(instance) ? (self ? here.state : 'up') : 'lost',
    self,
    started_at: isoTime(instance.startedAt),
    last_heartbeat_at: isoTime(instance.heartbeatAt),
    sessions: instance.owns,
  };
}

function sessionView(
  session: Session,
  turns: TurnsUnderWay | undefined,
  { phase, tool }: { phase: Phase; tool: string | null },
) {
  return {
    id: session.id,
    key: session.key,
    kind: session.kind,
    platform: session.platform,
    user: session.userId,
    title: session.title,
    state: session.state,
    phase,
    tool,
    turn_started_at: isoTime(turns?.runningSince ?? null),
    queued: turns?.queued ?? 0,
    last_activity_at: isoTime(session.lastActivityAt),
    last_heartbeat_at: isoTime(session.lastHeartbeatAt),
    expires_at: isoTime(session.expiresAt),
    message_count: session.messageCount,
    tokens: { input: session.tokensIn, output: session.tokensOut },
    gateway: session.owner,
  };
}
