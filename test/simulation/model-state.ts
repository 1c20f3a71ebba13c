/**
 * What sessions should do, written a second time: small, slow and with nothing of the real code in it. The model-based
 * test drives both and compares them after every step.
 */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const MODEL_IDLE_MS = HOUR;
export const MODEL_RESUME_MS = HOUR / 2;
export const MODEL_STUCK_AFTER = 3;
export const MODEL_LEASE_MS = 90_000;

export interface ModelTurn {
  readonly id: string;
  readonly by: 'user' | 'system';
  state: 'queued' | 'running' | 'cut';
}

export interface ModelSession {
  readonly id: string;
  readonly key: string;
  readonly attached: boolean;
  readonly parent: string | null;
  readonly child: boolean;
  state: string;
  /** Suspended by an operator. */
  parked: boolean;
  owner: string | null;
  epoch: number;
  activity: number;
  turns: ModelTurn[];
  cuts: number;
  resumeAt: number | null;
  background: number;
  messages: number;
  reason: string | null;
  cause: string | null;
  readonly log: string[];
}

/** What a command should answer: nothing special, or an error with this code. */
export type Expected = 'ok' | 'lease_lost' | 'fenced' | 'illegal_move' | 'session_ended' | 'turn_not_found';

export class Model {
  now: number;
  lease = 0;
  readonly leases = new Map<string, number>();
  readonly buried = new Set<string>();
  readonly sessions = new Map<string, ModelSession>();
  readonly refs = new Map<string, string>();
  /** Unsent replies of each conversation, in order. */
  readonly replies = new Map<string, string[]>();

  constructor(now: number) {
    this.now = now;
  }

  isUp(instance: string): boolean {
    return !this.buried.has(instance) && (this.leases.get(instance) ?? 0) > this.lease;
  }

  openOf(key: string): ModelSession | undefined {
    return [...this.sessions.values()].find((session) => session.key === key && session.state !== 'ended');
  }

  deadline(session: ModelSession): number | null {
    const held = session.background > 0 || session.turns.some((turn) => turn.state !== 'cut');
    if (session.attached || session.state === 'ended' || session.parked || held) return null;
    const base = this.#policyDeadline(session);
    if (base === null || session.resumeAt === null) return base;
    return session.turns.length > 0 ? Math.max(base, session.resumeAt + MODEL_RESUME_MS) : base;
  }

  #policyDeadline({ key, activity }: ModelSession): number | null {
    if (key.includes(':telegram:')) return activity + MODEL_IDLE_MS;
    if (key.includes(':discord:')) return Math.floor((activity - 4 * HOUR) / DAY) * DAY + DAY + 4 * HOUR;
    return null;
  }

  start(id: string, key: string, facts: Partial<ModelSession>, by: string): ModelSession {
    const attached = facts.attached ?? false;
    const session: ModelSession = {
      ...{
        id,
        key,
        attached,
        parent: null,
        child: false,
        state: 'open',
        parked: false,
        activity: this.now,
        turns: [],
        cuts: 0,
      },
      ...{ resumeAt: null, background: 0, messages: 0, reason: null, cause: null, log: ['session:start'] },
      owner: attached ? by : null,
      epoch: attached ? 1 : 0,
      ...facts,
    };
    this.sessions.set(id, session);
    return session;
  }

  /** Why a message could not continue this session. */
  arrival(session: ModelSession): string | null {
    if (session.parked) return null;
    if (session.state === 'suspended') return 'suspended';
    const deadline = this.deadline(session);
    if (deadline !== null && deadline <= this.now) return session.key.includes(':discord:') ? 'daily' : 'idle';
    const stale = session.state === 'resume_pending' && session.resumeAt !== null;
    const never = !session.key.includes(':telegram:') && !session.key.includes(':discord:');
    if (stale && !never && (session.resumeAt ?? 0) + MODEL_RESUME_MS < this.now) return 'resume_expired';
    return null;
  }

  touch(session: ModelSession, by: 'user' | 'system'): void {
    if (by === 'user') session.activity = Math.max(session.activity, this.now);
  }

  enqueue(session: ModelSession, turn: ModelTurn): void {
    session.turns.push(turn);
    this.touch(session, turn.by);
  }

  begin(session: ModelSession, turnId: string, by: string): Expected {
    if (session.state === 'ended') return 'session_ended';
    if (session.state === 'suspended') return 'illegal_move';
    const turn = session.turns.find((candidate) => candidate.id === turnId);
    if (turn === undefined) return 'turn_not_found';
    if (session.turns.some((other) => other.state === 'running')) return 'illegal_move';
    if (session.owner !== null && session.owner !== by) return 'fenced';
    if (session.state === 'resume_pending') session.log.push('session:resume');
    session.turns = session.turns.filter((other) => other === turn || other.state !== 'cut');
    turn.state = 'running';
    session.log.push('agent:start');
    Object.assign(session, { state: 'open', owner: by, epoch: session.epoch + 1, resumeAt: null });
    return 'ok';
  }

  /** Whether a fenced write of this instance at this epoch would be let in. */
  fence(session: ModelSession, by: string, epoch: number): Expected {
    if (session.state === 'ended') return 'session_ended';
    return session.owner === by && session.epoch === epoch ? 'ok' : 'fenced';
  }

  finish(session: ModelSession, turnId: string, by: string, epoch: number, messages: number): Expected {
    const allowed = this.fence(session, by, epoch);
    if (allowed !== 'ok') return allowed;
    const turn = session.turns.find((candidate) => candidate.id === turnId);
    if (turn === undefined) return 'turn_not_found';
    session.messages += messages;
    session.turns = session.turns.filter((other) => other !== turn);
    if (turn.state !== 'running') return 'ok';
    session.log.push('agent:end');
    this.touch(session, turn.by);
    session.cuts = 0;
    if (!session.attached && session.background === 0) session.owner = null;
    return 'ok';
  }

  interrupt(session: ModelSession): Expected {
    if (session.state === 'ended') return 'session_ended';
    const running = session.turns.find((turn) => turn.state === 'running');
    if (session.state !== 'open' || running === undefined || session.attached) return 'illegal_move';
    session.log.push('agent:end', 'session:resume_pending');
    session.cuts++;
    Object.assign(session, { owner: null, background: 0 });
    if (session.cuts >= MODEL_STUCK_AFTER) {
      session.log.push('session:suspend');
      this.#keepWords(session);
      session.turns = session.turns.filter((turn) => turn !== running);
      Object.assign(session, { state: 'suspended', resumeAt: null });
    } else {
      running.state = 'cut';
      Object.assign(session, { state: 'resume_pending', resumeAt: this.now });
    }
    return 'ok';
  }

  /** An operator lets a parked session go on. */
  reopen(session: ModelSession): Expected {
    if (session.state === 'ended') return 'session_ended';
    if (session.state !== 'suspended') return 'illegal_move';
    session.log.push('session:release');
    this.touch(session, 'user');
    Object.assign(session, { state: 'open', parked: false, cuts: 0 });
    return 'ok';
  }

  /** What people wrote in turns that are under way stays in the transcript when those are ended from outside. */
  #keepWords(session: ModelSession): void {
    session.messages += session.turns.filter((turn) => turn.state !== 'queued').length;
  }

  suspend(session: ModelSession): Expected {
    if (session.state === 'ended') return 'session_ended';
    if (session.state === 'suspended') return 'illegal_move';
    if (session.turns.some((turn) => turn.state === 'running')) session.log.push('agent:end');
    this.#keepWords(session);
    session.turns = session.turns.filter((turn) => turn.state === 'queued');
    session.log.push('session:suspend');
    if (!session.attached) session.owner = null;
    Object.assign(session, { state: 'suspended', parked: true, background: 0, resumeAt: null });
    return 'ok';
  }

  /** Ends a session and its children; returns the messages that waited in it. */
  end(session: ModelSession, reason: string, cause: string | null, keepsWords = true): ModelTurn[] {
    if (keepsWords) this.#keepWords(session);
    if (session.turns.some((turn) => turn.state === 'running')) session.log.push('agent:end');
    session.log.push('session:end');
    const waiting = session.turns.filter((turn) => turn.state === 'queued');
    Object.assign(session, { state: 'ended', parked: false, reason, cause, owner: null, background: 0 });
    Object.assign(session, { resumeAt: null, turns: [] });
    for (const child of this.sessions.values()) {
      if (child.parent === session.id && child.child && child.state !== 'ended')
        this.end(child, 'parent_ended', null, false);
    }
    return waiting;
  }

  /** What becomes of a session whose owner is gone. */
  orphan(session: ModelSession): void {
    if (session.attached) this.end(session, 'reaped', null);
    else if (session.turns.some((turn) => turn.state === 'running')) this.interrupt(session);
    else Object.assign(session, { owner: null, background: 0 });
  }
}
