import type { EndReason } from '../../src/lifecycle/states.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { Model, ModelSession } from './model-state.ts';
import {
  ByInstance,
  chosen,
  context,
  conversationOf,
  KEYS,
  OnSession,
  type Prediction,
  type Real,
} from './model-step.ts';

export class Receive extends ByInstance {
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
    const args = {
      context: context(real, instance),
      conversation: conversationOf(key),
      text: 'hi',
      by,
      begin,
      originRef: ref,
    };
    return {
      answer: 'ok',
      needsLease: true,
      action: () => real.store.write('receive', { ...args, turnId, newSessionId }),
    };
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
    const free =
      session.turns.length === 0 && !session.parked && (session.owner === null || session.owner === instance);
    model.enqueue(session, { id: turnId, by: this.by, state: 'queued' });
    if (this.begin && free) model.begin(session, turnId, instance);
  }
}

export class Reset extends ByInstance {
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
    const args = { context: context(real, instance), conversation: conversationOf(key), newSessionId, title: null };
    const slash = { command: 'new', args: '' };
    return { answer: 'ok', needsLease: true, action: () => real.store.write('resetSession', { ...args, slash }) };
  }
}

export class Continue extends OnSession {
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
    const args = {
      context: context(real, instance),
      fromId: from.id,
      lineage,
      newSessionId,
      title: null,
      conversation: null,
    };
    return {
      answer: 'ok',
      action: () => real.store.write('continueSession', { ...args, trigger: 'api', slash: null }),
    };
  }
}

export class End extends OnSession {
  readonly reason: EndReason;
  constructor(i: number, s: number, reason: EndReason) {
    super(i, s);
    this.reason = reason;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    if (up && session.state !== 'ended') model.end(session, this.reason, null);
    const facts = { reason: this.reason, cause: null, trigger: 'api', epoch: null } as const;
    const args = { context: context(real, instance), sessionId: session.id, ...facts };
    return { answer: 'ok', action: () => real.store.write('endSession', args) };
  }
}

export class StartAttached extends ByInstance {
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
    const conversation: ConversationRef = { ...conversationOf(key, true), kind: child ? 'child' : 'batch' };
    const args = {
      context: context(real, instance),
      sessionId,
      conversation,
      title: null,
      parentId: parent?.id ?? null,
    };
    const lineage = child ? 'spawn' : null;
    return { answer: 'ok', needsLease: true, action: () => real.store.write('startSession', { ...args, lineage }) };
  }
}
