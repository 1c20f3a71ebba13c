import type { ResumeReason } from '../../src/lifecycle/states.ts';
import type { PlainCommand } from '../../src/store/transactions/session-commands.ts';
import { PLATFORM } from './model-queue.ts';
import type { Expected, Model, ModelSession } from './model-state.ts';
import { commanded, context, OnSession, type Prediction, type Real } from './model-step.ts';

export class Begin extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const turnId = session.turns[0]?.id ?? 'none';
    const answer = up ? model.begin(session, turnId, instance) : 'ok';
    return commanded(answer, real, instance, session, { name: 'begin', turnId });
  }
}

export class Finish extends OnSession {
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
    const deliveries = messages.map(() => ({ id: `d${real.next++}`, platform: PLATFORM, target: {}, text: 'y' }));
    if (up && answer === 'ok') {
      const waiting = model.replies.get(session.key) ?? [];
      model.replies.set(session.key, [...waiting, ...deliveries.map(({ id }) => id)]);
    }
    const result = { outcome: 'done', response: 'y', model: null, usage: null } as const;
    const args = { context: context(real, instance), sessionId: session.id, turnId, epoch, result, error: null };
    return { answer, action: () => real.store.write('finishTurn', { ...args, messages, deliveries }) };
  }
}

export class Interrupt extends OnSession {
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
    return commanded(answer, real, instance, session, { name: 'interrupt', reason: this.reason, epoch });
  }
}

/** A turn that is cut again and again, as in a crash loop. */
export class CutLoop extends OnSession {
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
          await real.store.write('command', { context: context(real, instance), sessionId: session.id, command });
        }
      },
    };
  }
}

export class Suspend extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer = up ? model.suspend(session) : 'ok';
    return commanded(answer, real, instance, session, { name: 'suspend', reason: 'operator' });
  }
}

export class Reopen extends OnSession {
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer = up ? model.reopen(session) : 'ok';
    return commanded(answer, real, instance, session, { name: 'reopen' });
  }
}

export class Touch extends OnSession {
  readonly by: 'user' | 'system';
  constructor(i: number, s: number, by: 'user' | 'system') {
    super(i, s);
    this.by = by;
  }
  on(model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected = session.state === 'ended' ? 'session_ended' : 'ok';
    if (up && answer === 'ok') model.touch(session, this.by);
    return commanded(answer, real, instance, session, { name: 'touch', by: this.by });
  }
}

export class Title extends OnSession {
  on(_model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected = session.state === 'ended' ? 'session_ended' : 'ok';
    if (up && answer === 'ok') session.log.push('session:title');
    return commanded(answer, real, instance, session, { name: 'title', title: 'a title' });
  }
}

export class Background extends OnSession {
  readonly running: number;
  constructor(i: number, s: number, running: number) {
    super(i, s);
    this.running = running;
  }
  on(_model: Model, real: Real, instance: string, session: ModelSession, up: boolean): Prediction {
    const answer: Expected =
      session.state === 'ended' ? 'session_ended' : session.state === 'open' ? 'ok' : 'illegal_move';
    if (up && answer === 'ok') this.#apply(session, instance);
    return commanded(answer, real, instance, session, { name: 'background', running: this.running, epoch: null });
  }
  #apply(session: ModelSession, instance: string): void {
    const inUse = session.attached || this.running > 0 || session.turns.some((turn) => turn.state === 'running');
    if (session.owner === null && this.running > 0) session.epoch++;
    session.background = this.running;
    session.owner = inUse ? (session.owner ?? instance) : null;
  }
}
