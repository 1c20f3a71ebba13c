import type { Model, ModelSession } from './model-state.ts';
import { ByInstance, chosen, context, type Prediction, type Real } from './model-step.ts';

const HOUR = 3_600_000;
const LIMITS = { again: false, limit: 3, retries: 3 };

/** How the work of a claimed lane goes: done, refused, or the claim is forgotten by an instance that lives. */
export type Fate = 'done' | 'refused' | 'forgotten';

/** An instance takes what is to be sent, and sends the first reply of each lane. */
export class SendReplies extends ByInstance {
  readonly fate: Fate;
  constructor(i: number, fate: Fate) {
    super(i);
    this.fate = fate;
  }
  predict(model: Model, real: Real, instance: string): Prediction {
    return { answer: 'ok', needsLease: true, action: () => sendReplies(model, real, instance, this.fate) };
  }
}

export async function sendReplies(model: Model, real: Real, instance: string, fate: Fate): Promise<void> {
  const { store } = real;
  const token = `token${real.next++}`;
  const claim = { context: context(real, instance), platform: PLATFORM, token, repliesPerLane: 2, ...LIMITS };
  const { lanes } = await store.write('claimReplies', claim);
  for (const { key, deliveries } of lanes) {
    const waiting = model.replies.get(key) ?? [];
    const ids = deliveries.map(({ id }) => id);
    if (ids.join(' ') !== waiting.slice(0, 2).join(' ')) {
      throw new TypeError(`${key} sends ${ids.join(' ')}, the model says ${waiting.join(' ')}`);
    }
    const [deliveryId] = ids;
    if (fate === 'forgotten' || deliveryId === undefined) continue;
    const outcome =
      fate === 'done'
        ? ({ state: 'sent' } as const)
        : ({ state: 'retry', afterMs: 1000, error: 'no', counts: true } as const);
    const settlement = { platform: PLATFORM, key, token, deliveryId, outcome, attempts: 1, waits: 0, more: false };
    await store.write('settleReply', { context: context(real, instance), ...settlement });
    if (fate === 'done') waiting.shift();
  }
}

export const PLATFORM = 'telegram';

export class AddJob extends ByInstance {
  predict(model: Model, real: Real): Prediction {
    const id = `job${real.next++}`;
    if (real.jobs.length >= 3) return { answer: 'ok', action: async () => undefined };
    real.jobs.push(id);
    const facts = { id, name: null, schedule: 'every 1h', timezone: 'UTC', prompt: 'x', madeIn: null, madeBy: null };
    const target = { to: 'local' } as const;
    return { answer: 'ok', action: () => real.store.write('addJob', { ...facts, target, nextAt: model.now }) };
  }
}

/** An instance takes the jobs that are due: each tick is started by one, once, or left out while the last one runs. */
export class TakeTicks extends ByInstance {
  readonly fate: Fate;
  constructor(i: number, fate: Fate) {
    super(i);
    this.fate = fate;
  }
  predict(model: Model, real: Real, instance: string): Prediction {
    return { answer: 'ok', needsLease: true, action: () => this.#take(model, real, instance) };
  }
  async #take(model: Model, real: Real, instance: string): Promise<void> {
    const token = `token${real.next++}`;
    const claim = { context: context(real, instance), queue: 'ticks', token, ...LIMITS };
    const { lanes } = await real.store.write('claimTicks', claim);
    for (const lane of lanes) {
      if (real.ticks.has(`${lane.key} ${lane.tickAt}`)) throw new TypeError(`${lane.key} is due twice`);
      if (this.fate === 'forgotten') continue;
      if (this.fate === 'refused') {
        const delay = { context: context(real, instance), lane, afterMs: 1000, error: 'no' };
        await real.store.write('delayTick', delay);
      } else await this.#start(model, real, instance, lane);
    }
  }
  async #start(
    model: Model,
    real: Real,
    instance: string,
    { key: jobId, token, tickAt }: { key: string; token: string; tickAt: number },
  ): Promise<void> {
    const key = `agent:main:cron:dm:${jobId}`;
    const [turnId, newSessionId] = [`t${real.next++}`, `s${String(real.next++).padStart(5, '0')}`];
    const open: ModelSession | undefined = model.openOf(key);
    const conversation = { key, kind: 'cron', platform: 'cron', userId: null, origin: null, attached: true } as const;
    const started = await real.store.write('startRun', {
      ...{ context: context(real, instance), conversation, text: 'x', title: 'x', turnId, newSessionId },
      ...{ jobId, token, tickAt, nextAt: model.now + HOUR },
    });
    real.ticks.add(`${jobId} ${tickAt}`);
    const expected = open === undefined ? 'run' : 'busy';
    if (started?.type !== expected) throw new TypeError(`the tick is ${started?.type}, the model says ${expected}`);
    if (open !== undefined) return;
    const session = model.start(newSessionId, key, { attached: true }, instance);
    real.sessionIds.push(newSessionId);
    model.enqueue(session, { id: turnId, by: 'system', state: 'queued' });
  }
}

/** An instance that lives gives back every claim it does not know of: all of them, as it forgets each at once. */
export class ReleaseClaims extends ByInstance {
  predict(_model: Model, real: Real, instance: string): Prediction {
    return { answer: 'ok', needsLease: true, action: () => releaseClaims(real, instance) };
  }
}

async function releaseClaims(real: Real, instance: string): Promise<void> {
  const { claims } = await real.store.read('heldBy', { instance });
  await real.store.write('reconcile', { context: context(real, instance), sessions: [], claims });
  const { claims: left } = await real.store.read('heldBy', { instance });
  if (left.length > 0) throw new TypeError(`${left.length} claims are left`);
}

/** A job's time comes, or it is removed. */
export class RemoveJob extends ByInstance {
  predict(_model: Model, real: Real): Prediction {
    const id = chosen(real.jobs, this.i);
    if (id === undefined) return { answer: 'ok', action: async () => undefined };
    real.jobs.splice(real.jobs.indexOf(id), 1);
    return { answer: 'ok', action: () => real.store.write('removeJob', { id }) };
  }
}
