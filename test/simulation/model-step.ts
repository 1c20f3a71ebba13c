import type fc from 'fast-check';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import type { Store } from '../../src/store/port.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { PlainCommand } from '../../src/store/transactions/session-commands.ts';
import type { CommandContext } from '../../src/store/transactions/sessions.ts';
import type { StoreDump } from './check-store.ts';
import {
  type Expected,
  MODEL_IDLE_MS,
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
  readonly jobs: string[];
  /** Ticks that were started or left out. */
  readonly ticks: Set<string>;
  next: number;
  ran: number;
}

export type AnyCommand = fc.AsyncCommand<Model, Real>;

export const KEYS = ['telegram:dm:1', 'telegram:dm:2', 'discord:dm:1', 'slack:dm:1'].map(
  (tail) => `agent:main:${tail}`,
);

export const SUBSCRIBERS = { all: ['*'], ends: ['session:end', 'instance:lost'] } as const;

export function conversationOf(key: string, attached = false): ConversationRef {
  const platform = key.split(':')[2] ?? '';
  return { key, kind: attached ? 'batch' : 'chat', platform, userId: 'u', origin: { key }, attached };
}

/** A step: how the model sees it, how the store does it, and whether the two agree afterwards. */
export abstract class Step implements AnyCommand {
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

export function context(real: Real, instance: string): CommandContext {
  return { instanceId: instance, commandId: `c${real.next++}` };
}

export function chosen<T>(items: readonly T[], index: number): T | undefined {
  return items[index % Math.max(1, items.length)];
}

/** Runs the real command and checks that it answers what the model expects. */
export async function expectAnswer<T>(expected: Expected, action: () => Promise<T>): Promise<T | null> {
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
export async function compareRows(model: Model, real: Real): Promise<void> {
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

/** A step some instance takes: refused when its lease is gone. */
export abstract class ByInstance extends Step {
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
    return `${this.constructor.name}(${Object.values(this)
      .filter((value) => typeof value !== 'function')
      .join(', ')})`;
  }
}

export interface Prediction {
  readonly answer: Expected;
  readonly needsLease?: boolean;
  readonly action: () => Promise<unknown>;
}

/** A step on one of the sessions there have been. */
export abstract class OnSession extends ByInstance {
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

/** A plain command on a session, and what the model says it answers. */
export function commanded(
  answer: Expected,
  real: Real,
  instance: string,
  session: ModelSession,
  command: PlainCommand,
): Prediction {
  const args = { context: context(real, instance), sessionId: session.id, command };
  return { answer, action: () => real.store.write('command', args) };
}
