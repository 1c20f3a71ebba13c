import { MODEL_LEASE_MS, type Model, type ModelSession } from './model-state.ts';
import { ByInstance, chosen, context, OnSession, type Prediction, type Real, Step, SUBSCRIBERS } from './model-step.ts';

export class Boot extends Step {
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

export class Pass extends Step {
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

export class Beat extends ByInstance {
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    if (up) model.leases.set(instance, model.lease + MODEL_LEASE_MS);
    return {
      answer: up ? 'ok' : 'lease_lost',
      action: () => real.store.write('beat', { instance, ttlMs: MODEL_LEASE_MS }),
    };
  }
}

export class Reap extends ByInstance {
  readonly d: number;
  constructor(i: number, d: number) {
    super(i);
    this.d = d;
  }
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    const victim = chosen(real.instances, this.d) ?? '';
    const provenDead = this.d > 6 && victim !== instance ? [victim] : [];
    if (up) this.#markDead(model, instance, provenDead);
    const args = { context: context(real, instance), provenDead, limit: 1000 };
    return { answer: 'ok', needsLease: true, action: () => real.store.write('reap', args) };
  }
  #markDead(model: Model, reaper: string, provenDead: readonly string[]): void {
    for (const [id, until] of model.leases) {
      if (id !== reaper && (until <= model.lease || provenDead.includes(id))) model.buried.add(id);
    }
    for (const session of [...model.sessions.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
      if (session.owner !== null && model.buried.has(session.owner)) model.orphan(session);
    }
  }
}

export class Expire extends ByInstance {
  predict(model: Model, real: Real, instance: string, up: boolean): Prediction {
    if (up) {
      for (const session of model.sessions.values()) {
        const deadline = model.deadline(session);
        if (deadline === null || deadline > model.now) continue;
        model.end(session, session.key.includes(':discord:') ? 'daily_reset' : 'idle_expiry', null, false);
      }
    }
    const args = { context: context(real, instance), limit: 1000, trigger: 'watcher' } as const;
    return { answer: 'ok', needsLease: true, action: () => real.store.write('expire', args) };
  }
}

export class Reconcile extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    if (up && session.owner === instance) model.orphan(session);
    const strays = [{ id: session.id, epoch: null, held: false }];
    const args = { context: context(real, instance), sessions: strays, claims: [] };
    return { answer: 'ok', action: () => real.store.write('reconcile', args) };
  }
}
