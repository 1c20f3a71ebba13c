import { createHash } from 'node:crypto';
import type { Approval, ApprovalRequest } from '../agent/runner.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { hasCode } from '../errors/moirai-error.ts';
import { formatDuration } from '../lifecycle/duration.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import { repeat, type Timers } from '../queue/timers.ts';
import type { Answerer, AnswerRight } from './access.ts';
import { answerApproval } from './answer-approval.ts';
import { APPROVAL_QUEUE, type ApprovalRow } from './approval-store.ts';

/** A question as those hear it who look on in the process that asks. */
export interface PendingApproval {
  readonly id: string;
  readonly request: ApprovalRequest;
  /** What came of it, whoever answered. */
  readonly settled: Promise<Approval>;
}

/** What is asked, of whom. */
export interface Question {
  /** Whose people are asked. */
  readonly session: Session;
  /** The turn that asks, which may be of work that the session delegated. */
  readonly turnId: string;
  readonly request: ApprovalRequest;
  /** The person whose turn asks, told from everybody on every platform; null where nobody has a name. */
  readonly askedOf: string | null;
}

export interface ApprovalsDeps {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly newId: () => string;
  readonly rule: Config['access']['approvals'];
  /** So long a question waits; then it is a no. */
  readonly timeoutMs: number;
  readonly failed: (error: unknown) => void;
}

/** How often to look whether a question that this process asked was answered by another one; a hint comes sooner. */
const POLL_MS = 500;
const SWEEP_MS = 10_000;
const SWEPT = 100;

/**
 * What agents ask people to allow. A question and its answer are in the store, and events of the log, so that the answer
 * may be given to any process: the first one counts, and silence is a no.
 */
export class Approvals {
  readonly #deps: ApprovalsDeps;
  /** Questions that this process waits for. */
  readonly #pending = new Map<string, (approval: Approval) => void>();
  readonly #watchers = new Set<(asked: PendingApproval) => void>();
  #stop: () => void = () => undefined;

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { engine, timers, failed } = this.#deps;
    const stopLooking = repeat(timers, POLL_MS, () => this.#look(), failed);
    const stopSweeping = repeat(timers, SWEEP_MS, () => this.#sweep(), failed);
    const unlisten = engine.store.onCommit(({ queues }) => {
      if (queues.has(APPROVAL_QUEUE)) this.#look().catch(failed);
    });
    this.#stop = () => {
      stopLooking();
      stopSweeping();
      unlisten();
    };
  }

  stop(): void {
    this.#stop();
  }

  /**
   * Asks, and waits for the answer. What was allowed before for this session or for good is not asked again. `asked` is
   * called with the id of a question once it is in the store.
   */
  async ask(question: Question, signal: AbortSignal, asked: (approval: PendingApproval) => void): Promise<Approval> {
    const { engine, timers, timeoutMs, failed } = this.#deps;
    const { session, turnId, request, askedOf } = question;
    // Made at once: questions of one conversation are answered in the order in which they were asked.
    const id = this.#deps.newId();
    const exact = exactly(request);
    const granted = await engine.store.read('grantedApproval', { sessionId: session.id, exact });
    if (granted !== null) return { allowed: true };
    const { promise: settled, resolve } = Promise.withResolvers<Approval>();
    this.#pending.set(id, resolve);
    const expire = (): void => void this.#expire(id).catch(failed);
    const abandon = (): void => {
      resolve({ allowed: false, reason: 'the turn was stopped' });
      expire();
    };
    let cancelTimeout = (): void => undefined;
    const facts = { id, sessionId: session.id, turnId, tool: request.tool, summary: request.action, exact };
    try {
      await engine.settle((context) => engine.store.write('askApproval', { ...facts, askedOf, timeoutMs, context }));
      cancelTimeout = timers.after(timeoutMs, expire);
      if (signal.aborted) abandon();
      signal.addEventListener('abort', abandon, { once: true });
      const pending = { id, request, settled };
      asked(pending);
      for (const watcher of this.#watchers) watcher(pending);
      return await settled;
    } finally {
      cancelTimeout();
      signal.removeEventListener('abort', abandon);
      this.#pending.delete(id);
    }
  }

  /** Hears of every question in this process: for a door whose people are not written to. */
  watch(watcher: (asked: PendingApproval) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** What waits for an answer, in one conversation or in all. */
  waiting(key: string | null = null): Promise<ApprovalRow[]> {
    return this.#deps.engine.store.read('waitingApprovals', { key });
  }

  /** Answers the oldest question of a conversation; null when there is none. */
  async answer(key: string, decision: ApprovalAnswer, by: Answerer, reason: string | null = null) {
    const [oldest] = await this.waiting(key);
    return oldest === undefined ? null : this.answerById(oldest.id, decision, by, reason);
  }

  /** Answers one question; null when there is none, or when it was answered before. */
  async answerById(
    id: string,
    decision: ApprovalAnswer,
    by: Answerer,
    reason: string | null = null,
  ): Promise<ApprovalRow | Exclude<AnswerRight, 'yes'> | null> {
    try {
      const answered = await answerApproval(this.#deps.engine, this.#deps.rule, { id, decision, by, reason });
      this.#settle(answered);
      return answered;
    } catch (thrown) {
      if (hasCode(thrown, 'approval_forbidden'))
        return thrown.details.right === 'admins only' ? 'admins only' : 'not yours';
      if (hasCode(thrown, 'approval_not_found', 'approval_over')) return null;
      throw thrown;
    }
  }

  async #expire(id: string): Promise<void> {
    const { engine } = this.#deps;
    const facts = { id, decision: 'expired', by: null, reason: null } as const;
    const answered = await engine.settle((context) => engine.store.write('answerApproval', { context, ...facts }));
    if (answered !== null) this.#settle(answered.approval);
  }

  #settle({ id, decision, reason }: ApprovalRow): void {
    const resolve = this.#pending.get(id);
    if (resolve === undefined || decision === null) return;
    const { timeoutMs } = this.#deps;
    if (decision === 'expired')
      resolve({ allowed: false, reason: `nobody answered within ${formatDuration(timeoutMs)}` });
    else if (decision === 'deny') resolve({ allowed: false, reason: reason ?? 'the user said no' });
    else resolve({ allowed: true });
  }

  /** Another process may have taken the answer. */
  async #look(): Promise<void> {
    if (this.#pending.size === 0) return;
    const ids = [...this.#pending.keys()];
    for (const row of await this.#deps.engine.store.read('answeredApprovals', { ids })) this.#settle(row);
  }

  /** What nobody waits for any longer expires: the process that asked is gone. */
  async #sweep(): Promise<void> {
    const { engine } = this.#deps;
    for (const id of await engine.store.read('abandonedApprovals', { limit: SWEPT })) {
      await this.#expire(id);
    }
  }
}

/** Stands for a tool with these very arguments. */
function exactly({ tool, action, args }: ApprovalRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, action, args ?? null]))
    .digest('base64url');
}
