import fc from 'fast-check';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import type { EndReason, ResumeReason } from '../../src/lifecycle/states.ts';
import type { Store } from '../../src/store/port.ts';
import type { Party, PlainCommand } from '../../src/store/transactions/conversations.ts';
import type { Giver } from '../../src/store/transactions/sessions.ts';
import type { StoreDump } from './check-store.ts';
import {
  type Expected,
  MODEL_IDLE_MS,
  MODEL_LEASE_MS,
  MODEL_RESUME_MS,
  MODEL_STUCK_AFTER,
  type Model,
  type ModelSession,
} from './model-state.ts';

export const MODEL_RULES: ResetRules = {
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'none' },
  resetByType: {},
  resetByPlatform: {
    telegram: { mode: 'idle', idleMs: MODEL_IDLE_MS },
    discord: { mode: 'daily', at: '04:00', timezone: 'UTC' },
  },
  resumeWindowMs: MODEL_RESUME_MS,
  stuckAfter: MODEL_STUCK_AFTER,
};

export interface Real {
  readonly store: Store;
  readonly dump: () => Promise<StoreDump>;
  readonly instances: string[];
  readonly sessionIds: string[];
  readonly deliveries: Map<string, string[]>;
  /** Ended and compared: nothing may change in them any more, and the final look at the log would show it. */
  readonly settled: Set<string>;
  next: number;
  ran: number;
}

export type AnyCommand = fc.AsyncCommand<Model, Real>;

const KEYS = ['telegram:dm:1', 'telegram:dm:2', 'discord:dm:1', 'slack:dm:1'].map((tail) => `agent:main:${tail}`);
const SUBSCRIBERS = { all: ['*'], ends: ['session:end', 'instance:lost'] } as const;

function partyOf(key: string, attached = false): Party {
  const platform = key.split(':')[2] ?? '';
  return { key, kind: attached ? 'batch' : 'chat', platform, userId: 'u', origin: { key }, attached };
}

/** A step: how the model sees it, how the store does it, and whether the two agree afterwards. */
abstract class Step implements AnyCommand {
  check(model: Readonly<Model>): boolean {
    return model.leases.size > 0;
  }

  async run(model: Model, real: Real): Promise<void> {
    real.ran++;
    await this.act(model, real);
    await compareRows(model, real);
  }

  abstract act(model: Model, real: Real): Promise<void>;
  abstract toString(): string;
}

function giver(real: Real, instance: string): Giver {
  return { instance, commandId: `c${real.next++}` };
}

function chosen<T>(items: readonly T[], index: number): T | undefined {
  return items[index % Math.max(1, items.length)];
}

/** Runs the real command and checks that it answers what the model expects. */
async function expectAnswer<T>(expected: Expected, action: () => Promise<T>): Promise<T | null> {
  let code = 'ok';
  let value: T | null = null;
  try {
    value = await action();
  } catch (thrown) {
    const error = MoiraiError.wrap(thrown);
    code = error.code;
    if (code === 'internal') throw error;
  }
  if (code !== expected) throw new TypeError(`answered ${code}, the model says ${expected}`);
  return value;
}

/** After every step, every session of the model equals its row. */
async function compareRows(model: Model, real: Real): Promise<void> {
  for (const session of model.sessions.values()) {
    if (real.settled.has(session.id)) continue;
    const row = await real.store.read('getSession', { sessionId: session.id });
    if (row === null) throw new TypeError(`${session.id} is not in the store`);
    const is = [row.state, row.owner, row.epoch, row.endReason, row.endCause, row.cuts, row.background];
    const should = [session.state, session.owner, session.epoch, session.reason, session.cause, session.cuts];
    const rest = [row.expiresAt, row.messageCount, row.seq];
    const restShould = [model.deadline(session), session.messages, session.log.length];
    const [a, b] = [JSON.stringify([...is, ...rest]), JSON.stringify([...should, session.background, ...restShould])];
    if (a !== b) throw new TypeError(`${session.id} is ${a}, the model says ${b}`);
    if (session.state === 'ended') real.settled.add(session.id);
  }
}

class Boot extends Step {
  override check(model: Readonly<Model>): boolean {
    return model.leases.size < 12;
  }
  async act(model: Model, real: Real): Promise<void> {
    const id = `ins_${model.leases.size + 1}`;
    const facts = { name: null, version: '0', host: 'h', bootId: null, pidSpace: null, pid: 1, pidStarted: null };
    await real.store.write('bootInstance', { facts: { id, ...facts }, ttlMs: MODEL_LEASE_MS });
    if (real.instances.length === 0) {
      for (const [name, patterns] of Object.entries(SUBSCRIBERS)) {
        await real.store.write('subscribe', { name, patterns, from: 'now' });
      }
    }
    real.instances.push(id);
    model.leases.set(id, model.lease + MODEL_LEASE_MS);
  }
  toString = (): string => 'boot';
}

class Pass extends Step {
  readonly ms: number;
  readonly wall: number;
  constructor(ms: number, wall: number) {
    super();
    this.ms = ms;
    this.wall = wall;
  }
  async act(model: Model): Promise<void> {
    model.lease += this.ms;
    model.now = Math.max(Date.UTC(2026, 0, 1), model.now + this.ms + this.wall);
  }
  toString = (): string => `pass(${this.ms}, wall ${this.wall})`;
}

/** A step some instance takes: refused when its lease is gone. */
abstract class ByInstance extends Step {
  readonly i: number;
  constructor(i: number) {
    super();
    this.i = i;
  }
  async act(model: Model, real: Real): Promise<void> {
    const instance = this.instance(model, real);
    const expected = this.predict(model, real, instance, model.isUp(instance));
    await expectAnswer(model.isUp(instance) || !expected.needsLease ? expected.answer : 'lease_lost', expected.action);
  }
  instance(_model: Model, real: Real): string {
    return chosen(real.instances, this.i) ?? '';
  }
  abstract predict(model: Model, real: Real, instance: string, up: boolean): Prediction;
  toString(): string {
    return `${this.constructor.name}(${Object.values(this).filter((value) => typeof value !== 'function').join(', ')})`;
  }
}

interface Prediction {
  readonly answer: Expected;
  readonly needsLease?: boolean;
  readonly action: () => Promise<unknown>;
}

class Beat extends ByInstance {
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    if (up) model.leases.set(instance, model.lease + MODEL_LEASE_MS);
    return {
      answer: up ? 'ok' : 'lease_lost',
      action: () => real.store.write('beat', { instance, ttlMs: MODEL_LEASE_MS }),
    };
  }
}

class Receive extends ByInstance {
  readonly k: number;
  readonly by: 'user' | 'system';
  readonly ref: number;
  readonly begin: boolean;
  constructor(i: number, k: number, by: 'user' | 'system', ref: number, begin: boolean) {
    super(i);
    this.k = k;
    this.by = by;
    this.ref = ref;
    this.begin = begin;
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const key = chosen(KEYS, this.k) ?? '';
    const [turnId, newSessionId] = [`t${real.next++}`, `s${String(real.next++).padStart(5, '0')}`];
    const ref = `m${this.ref}`;
    if (up && !model.refs.has(ref)) this.#arrive(model, real, instance, key, turnId, newSessionId, ref);
    const { by, begin } = this;
    const args = { giver: giver(real, instance), party: partyOf(key), text: 'hi', by, begin, originRef: ref };
    return { answer: 'ok', needsLease: true, action: () => real.store.write('receive', { ...args, turnId, newSessionId }) };
  }
  #arrive(model: Model, real: Real, instance: string, key: string, turnId: string, newId: string, ref: string): void {
    model.refs.set(ref, turnId);
    let session = model.openOf(key);
    const cause = session === undefined ? null : model.arrival(session);
    if (session === undefined || cause !== null) {
      const waiting = session === undefined ? [] : model.end(session, 'auto_reset', cause);
      session = model.start(newId, key, { parent: session?.id ?? null }, instance);
      real.sessionIds.push(newId);
      session.turns.push(...waiting);
    }
    const free = session.turns.length === 0 && (session.owner === null || session.owner === instance);
    model.enqueue(session, { id: turnId, by: this.by, state: 'queued' });
    if (this.begin && free) model.begin(session, turnId, instance);
  }
}

/** A step on one of the sessions there have been. */
abstract class OnSession extends ByInstance {
  readonly s: number;
  constructor(i: number, s: number) {
    super(i);
    this.s = s;
  }
  override check(model: Readonly<Model>): boolean {
    return model.sessions.size > 0;
  }
  /** Mostly who holds the session, so that more than refusals is seen. */
  override instance(model: Model, real: Real): string {
    const owner = this.#session(model, real)?.owner ?? null;
    return owner !== null && this.i < 9 ? owner : super.instance(model, real);
  }
  /** Recent sessions are where things happen. */
  #session(model: Model, real: Real): ModelSession | undefined {
    return model.sessions.get(chosen(real.sessionIds.slice(-6), this.s) ?? '');
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const session = this.#session(model, real);
    if (session === undefined) return { answer: 'ok', action: async () => undefined };
    return { needsLease: true, ...this.on(model, real, instance, session, up) };
  }
  abstract on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction;
}

class Begin extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const turnId = session.turns[0]?.id ?? 'none';
    const answer = up ? model.begin(session, turnId, instance) : 'ok';
    const command = { name: 'begin', turnId } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, command };
    return { answer, action: () => real.store.write('command', args) };
  }
}

class Finish extends OnSession {
  readonly stale: number;
  readonly messages: number;
  constructor(i: number, s: number, stale: number, messages: number) {
    super(i, s);
    this.stale = stale;
    this.messages = messages;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const epoch = session.epoch - this.stale;
    const turnId = session.turns.find((turn) => turn.state === 'running')?.id ?? 'none';
    const answer = up ? model.finish(session, turnId, instance, epoch, this.messages) : 'ok';
    const messages = Array.from({ length: this.messages }, () => ({ role: 'user', text: 'x', turnId }));
    const result = { outcome: 'done', response: 'y', model: null, usage: null } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, turnId, epoch, result, error: null };
    return { answer, action: () => real.store.write('finishTurn', { ...args, messages, deliveries: [] }) };
  }
}

class Interrupt extends OnSession {
  readonly reason: ResumeReason;
  readonly stale: number;
  constructor(i: number, s: number, reason: ResumeReason, stale: number) {
    super(i, s);
    this.reason = reason;
    this.stale = stale;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const epoch = session.epoch - this.stale;
    // The table of moves is asked before the fence.
    const legal = session.state === 'open' || session.state === 'ended';
    const fence = legal ? model.fence(session, instance, epoch) : 'illegal_move';
    const answer = up && fence === 'ok' ? model.interrupt(session) : fence;
    const command = { name: 'interrupt', reason: this.reason, epoch } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, command };
    return { answer, action: () => real.store.write('command', args) };
  }
}

/** A turn that is cut again and again, as in a crash loop. */
class CutLoop extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const turnId = session.turns[0]?.id;
    const free = session.turns.every((turn) => turn.state !== 'running') && session.owner === null;
    const able = up && free && !session.attached && (session.state === 'open' || session.state === 'resume_pending');
    if (!able || turnId === undefined) return { answer: 'ok', needsLease: false, action: async () => undefined };
    const commands: PlainCommand[] = [];
    while (session.state !== 'suspended') {
      model.begin(session, turnId, instance);
      commands.push({ name: 'begin', turnId });
      commands.push({ name: 'interrupt', reason: 'crash', epoch: session.epoch });
      model.interrupt(session);
    }
    return {
      answer: 'ok',
      action: async () => {
        for (const command of commands) {
          await real.store.write('command', { giver: giver(real, instance), sessionId: session.id, command });
        }
      },
    };
  }
}

class Suspend extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer = up ? model.suspend(session) : 'ok';
    const args = { giver: giver(real, instance), sessionId: session.id, command: { name: 'suspend' } as const };
    return { answer, action: () => real.store.write('command', args) };
  }
}

class Touch extends OnSession {
  readonly by: 'user' | 'system';
  constructor(i: number, s: number, by: 'user' | 'system') {
    super(i, s);
    this.by = by;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected =
      session.state === 'ended' ? 'session_ended' : session.state === 'suspended' ? 'illegal_move' : 'ok';
    if (up && answer === 'ok') model.touch(session, this.by);
    const args = { giver: giver(real, instance), sessionId: session.id, command: { name: 'touch', by: this.by } as const };
    return { answer, action: () => real.store.write('command', args) };
  }
}

class Title extends OnSession {
  on(_model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected = session.state === 'ended' ? 'session_ended' : 'ok';
    if (up && answer === 'ok') session.log.push('session:title');
    const command = { name: 'title', title: 'a title' } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, command };
    return { answer, action: () => real.store.write('command', args) };
  }
}

class Background extends OnSession {
  readonly running: number;
  constructor(i: number, s: number, running: number) {
    super(i, s);
    this.running = running;
  }
  on(_model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected =
      session.state === 'ended' ? 'session_ended' : session.state === 'open' ? 'ok' : 'illegal_move';
    if (up && answer === 'ok') this.#apply(session, instance);
    const command = { name: 'background', running: this.running, epoch: null } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, command };
    return { answer, action: () => real.store.write('command', args) };
  }
  #apply(session: ModelSession, instance: string): void {
    const inUse = session.attached || this.running > 0 || session.turns.some((turn) => turn.state === 'running');
    if (session.owner === null && this.running > 0) session.epoch++;
    session.background = this.running;
    session.owner = inUse ? (session.owner ?? instance) : null;
  }
}

class Reset extends ByInstance {
  readonly k: number;
  constructor(i: number, k: number) {
    super(i);
    this.k = k;
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const key = chosen(KEYS, this.k) ?? '';
    const newSessionId = `s${String(real.next++).padStart(5, '0')}`;
    if (up) {
      const old = model.openOf(key);
      old?.log.push('command:new');
      const waiting = old === undefined ? [] : model.end(old, 'user_reset', null);
      const session = model.start(newSessionId, key, { parent: old?.id ?? null }, instance);
      real.sessionIds.push(newSessionId);
      session.log.push(old === undefined ? 'command:new' : 'session:reset');
      session.turns.push(...waiting);
    }
    const args = { giver: giver(real, instance), party: partyOf(key), newSessionId, title: null };
    const slash = { command: 'new', args: '' };
    return { answer: 'ok', needsLease: true, action: () => real.store.write('resetSession', { ...args, slash }) };
  }
}

class Continue extends OnSession {
  readonly lineage: 'resume' | 'branch';
  constructor(i: number, s: number, lineage: 'resume' | 'branch') {
    super(i, s);
    this.lineage = lineage;
  }
  on(model: Model, real: Real, instance: string, from: ModelSession, up: boolean): Prediction {
    const { lineage } = this;
    const newSessionId = `s${String(real.next++).padStart(5, '0')}`;
    const open = model.openOf(from.key);
    // Only conversations are continued; what belongs to a process ends with it.
    if (from.attached) return { answer: 'ok', needsLease: false, action: async () => undefined };
    if (up && !(lineage === 'resume' && open === from)) {
      const waiting = open === undefined ? [] : model.end(open, lineage === 'resume' ? 'switched' : 'branched', null);
      const session = model.start(newSessionId, from.key, { parent: from.id }, instance);
      real.sessionIds.push(newSessionId);
      session.turns.push(...waiting);
    }
    const args = { giver: giver(real, instance), fromId: from.id, lineage, newSessionId, title: null, party: null };
    return {
      answer: 'ok',
      action: () => real.store.write('continueSession', { ...args, trigger: 'api', slash: null }),
    };
  }
}

class End extends OnSession {
  readonly reason: EndReason;
  constructor(i: number, s: number, reason: EndReason) {
    super(i, s);
    this.reason = reason;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    if (up && session.state !== 'ended') model.end(session, this.reason, null);
    const facts = { reason: this.reason, cause: null, trigger: 'api', epoch: null } as const;
    const args = { giver: giver(real, instance), sessionId: session.id, ...facts };
    return { answer: 'ok', action: () => real.store.write('endSession', args) };
  }
}

class StartAttached extends ByInstance {
  readonly p: number;
  constructor(i: number, p: number) {
    super(i);
    this.p = p;
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const sessionId = `s${String(real.next++).padStart(5, '0')}`;
    const key = `agent:main:batch:dm:${sessionId}`;
    const parents = [...model.sessions.values()].filter((session) => session.state !== 'ended');
    const parent = this.p === 0 ? undefined : chosen(parents, this.p);
    const child = parent !== undefined;
    if (up) {
      model.start(sessionId, key, { attached: true, parent: parent?.id ?? null, child }, instance);
      real.sessionIds.push(sessionId);
    }
    const party: Party = { ...partyOf(key, true), kind: child ? 'child' : 'batch' };
    const args = { giver: giver(real, instance), sessionId, party, title: null, parentId: parent?.id ?? null };
    const lineage = child ? 'spawn' : null;
    return { answer: 'ok', needsLease: true, action: () => real.store.write('startSession', { ...args, lineage }) };
  }
}

class Reap extends ByInstance {
  readonly d: number;
  constructor(i: number, d: number) {
    super(i);
    this.d = d;
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const victim = chosen(real.instances, this.d) ?? '';
    const provenDead = this.d > 6 && victim !== instance ? [victim] : [];
    if (up) this.#bury(model, instance, provenDead);
    const args = { giver: giver(real, instance), provenDead, limit: 1000 };
    return { answer: 'ok', needsLease: true, action: () => real.store.write('reap', args) };
  }
  #bury(model: Model, reaper: string, provenDead: readonly string[]): void {
    for (const [id, until] of model.leases) {
      if (id !== reaper && (until <= model.lease || provenDead.includes(id))) model.buried.add(id);
    }
    for (const session of [...model.sessions.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
      if (session.owner !== null && model.buried.has(session.owner)) model.orphan(session);
    }
  }
}

class Expire extends ByInstance {
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    if (up) {
      for (const session of model.sessions.values()) {
        const deadline = model.deadline(session);
        if (deadline === null || deadline > model.now) continue;
        model.end(session, session.key.includes(':discord:') ? 'daily_reset' : 'idle_expiry', null);
      }
    }
    const args = { giver: giver(real, instance), limit: 1000, trigger: 'watcher' } as const;
    return { answer: 'ok', needsLease: true, action: () => real.store.write('expire', args) };
  }
}

class Reconcile extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    if (up && session.owner === instance) model.orphan(session);
    const args = { giver: giver(real, instance), sessions: [session.id], deliveries: [] };
    return { answer: 'ok', action: () => real.store.write('reconcile', args) };
  }
}

/** A dispatcher at work: it takes lanes and hands over, fails, or dies with them. */
class Deliver extends ByInstance {
  readonly sub: keyof typeof SUBSCRIBERS;
  readonly fate: 'ack' | 'fail' | 'die' | 'partial';
  constructor(i: number, sub: keyof typeof SUBSCRIBERS, fate: Deliver['fate']) {
    super(i);
    this.sub = sub;
    this.fate = fate;
  }
  predict(_model: Model, real: Real, instance: string): Prediction {
    return { answer: 'ok', needsLease: true, action: () => deliver(real, instance, this.sub, this.fate) };
  }
}

async function deliver(
  real: Real,
  instance: string,
  subscriber: keyof typeof SUBSCRIBERS,
  fate: Deliver['fate'],
): Promise<void> {
  const { store } = real;
  const token = `token${real.next++}`;
  const limits = { lanes: 3, retries: 3, eventsPerLane: 4, claimMs: 30_000 };
  const claimed = await store.write('claimLanes', { giver: giver(real, instance), subscriber, token, ...limits });
  const seen = real.deliveries.get(subscriber) ?? [];
  real.deliveries.set(subscriber, seen);
  for (const lane of claimed.lanes) {
    if (fate === 'die') continue;
    const count = fate === 'ack' ? lane.events.length : Math.min(1, lane.events.length - 1);
    for (const { event } of lane.events.slice(0, Math.max(0, count))) {
      if (!seen.includes(event.id)) seen.push(event.id);
    }
    const failed = lane.events[Math.max(0, count)];
    const common = { giver: giver(real, instance), lane: { subscriber, key: lane.key, token } };
    if (fate === 'ack' || failed === undefined) {
      await store.write('ackLane', { ...common, delivered: { upTo: lane.upTo, replayed: [] } });
    } else {
      await store.write('failLane', {
        ...{ ...common, delivered: { upTo: failed.no - 1, replayed: [] }, error: 'no', attempts: 1, waits: 0 },
        failed: { no: failed.no, eventId: failed.event.id, eventType: failed.event.type, replay: false },
        ...{ retryInMs: 1000, dead: false },
      });
    }
  }
}

/** The faults are over: a fresh instance delivers what is left. */
export async function drain(model: Model, real: Real): Promise<void> {
  if (real.instances.length === 0) return;
  await new Boot().act(model, real);
  const instance = real.instances.at(-1) ?? '';
  for (const subscriber of Object.keys(SUBSCRIBERS) as (keyof typeof SUBSCRIBERS)[]) {
    for (let rounds = 0; ; rounds++) {
      model.now += 60_000;
      model.lease += 40_000;
      await real.store.write('beat', { instance, ttlMs: MODEL_LEASE_MS });
      await deliver(real, instance, subscriber, 'ack');
      const status = (await real.store.read('listSubscribers', {})).find(({ name }) => name === subscriber);
      if (status === undefined || status.lanes === 0) break;
      if (rounds > 500) throw new TypeError(`${subscriber} is never drained`);
    }
  }
}

/** The log says what the model's sessions did, event by event, and each subscriber heard it in that order. */
export async function compareLogs(model: Model, real: Real): Promise<void> {
  const dump = await real.dump();
  const events = dump.events.map((row) => JSON.parse(String(row.body)) as MoiraiEvent);
  for (const session of model.sessions.values()) {
    const log = events.filter((event) => event.session_id === session.id && event.session_seq !== null);
    const types = log.map((event) => event.type).join(' ');
    if (types !== session.log.join(' ')) throw new TypeError(`${session.id} logged ${types}, not ${session.log.join(' ')}`);
    if (log.some((event, i) => event.session_seq !== i + 1)) throw new TypeError(`${session.id} has a gap in its log`);
  }
  for (const [subscriber, patterns] of Object.entries(SUBSCRIBERS)) {
    const wanted = (event: MoiraiEvent): boolean =>
      !(event.type === 'hook:failed' && event.subscriber === subscriber) &&
      patterns.some((pattern) => pattern === '*' || pattern === event.type);
    const seen = new Map((real.deliveries.get(subscriber) ?? []).map((id, i) => [id, i]));
    const last = new Map<string, number>();
    for (const event of events.filter(wanted)) {
      const at = seen.get(event.id);
      if (at === undefined) throw new TypeError(`${subscriber} never got ${event.id}`);
      const key = event.session_key ?? '';
      if (at < (last.get(key) ?? -1)) throw new TypeError(`${subscriber} got ${event.id} out of order`);
      last.set(key, at);
    }
  }
  if (dump.lanes.length > 0) throw new TypeError('lanes are left although all was delivered');
}

/** Every kind of step, the usual ones more often. */
export function modelCommands(): fc.Arbitrary<AnyCommand>[] {
  const i = fc.nat(11);
  const s = fc.nat(11);
  const k = fc.nat(3);
  const actor = fc.constantFrom('user' as const, 'system' as const);
  const by = fc.oneof({ weight: 4, arbitrary: fc.constant('user' as const) }, { weight: 1, arbitrary: actor });
  const stale = fc.constantFrom(0, 0, 0, 0, 1);
  const receive = fc
    .tuple(i, k, by, fc.oneof(fc.nat(5), fc.nat(100_000), fc.nat(100_000)), fc.boolean())
    .map((tuple) => new Receive(...tuple));
  const finish = fc.tuple(i, s, stale, fc.nat(2)).map((tuple) => new Finish(...tuple));
  const begin = fc.tuple(i, s).map((tuple) => new Begin(...tuple));
  const resumeReason = fc.constantFrom('restart' as const, 'shutdown' as const, 'crash' as const);
  const interrupt = fc.tuple(i, s, resumeReason, stale).map((tuple) => new Interrupt(...tuple));
  const background = fc.tuple(i, s, fc.nat(2)).map((tuple) => new Background(...tuple));
  const reason = fc.constantFrom('api_close' as const, 'admin_close' as const, 'deleted' as const);
  const wall = fc.constantFrom(0, 0, 0, 0, 0, 3_600_000, -1_800_000);
  const ms = fc.oneof(fc.nat(1000), fc.nat(30_000), fc.nat(2 * 3_600_000));
  const sub = fc.constantFrom('all' as const, 'ends' as const);
  const fate = fc.constantFrom('ack' as const, 'ack' as const, 'fail' as const, 'die' as const, 'partial' as const);
  return [
    fc.constant(new Boot()),
    fc.tuple(ms, wall).map((tuple) => new Pass(...tuple)),
    i.map((n) => new Beat(n)),
    ...[receive, receive, receive, begin, begin, finish, finish, finish],
    ...[interrupt, interrupt],
    fc.tuple(i, s).map((tuple) => new CutLoop(...tuple)),
    fc.tuple(i, s).map((tuple) => new Suspend(...tuple)),
    fc.tuple(i, s, actor).map((tuple) => new Touch(...tuple)),
    fc.tuple(i, s).map((tuple) => new Title(...tuple)),
    ...[background, background],
    fc.tuple(i, k).map((tuple) => new Reset(...tuple)),
    fc.tuple(i, s, fc.constantFrom('resume' as const, 'branch' as const)).map((tuple) => new Continue(...tuple)),
    fc.tuple(i, s, reason).map((tuple) => new End(...tuple)),
    fc.tuple(i, fc.nat(3)).map((tuple) => new StartAttached(...tuple)),
    fc.tuple(i, fc.nat(11)).map((tuple) => new Reap(...tuple)),
    i.map((n) => new Expire(n)),
    fc.tuple(i, s).map((tuple) => new Reconcile(...tuple)),
    fc.tuple(i, sub, fate).map((tuple) => new Deliver(...tuple)),
  ];
}
