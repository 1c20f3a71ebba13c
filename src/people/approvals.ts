import type { Approval, ApprovalRequest } from '../agent/runner.ts';
import type { Config } from '../config/config.ts';
import { formatDuration } from '../lifecycle/duration.ts';
import type { Timers } from '../queue/timers.ts';
import { type Answerer, type AnswerRight, mayAnswer } from './access.ts';

type Answered = ApprovalRequest | Exclude<AnswerRight, 'yes'> | null;

interface Pending extends Question, PendingApproval {
  readonly settle: (approval: Approval) => void;
}

/** A question as whoever is there hears it. */
export interface PendingApproval {
  readonly id: string;
  readonly key: string;
  readonly request: ApprovalRequest;
  /** What came of it, whoever answered. */
  readonly settled: Promise<Approval>;
}

/** What is asked, of whom. */
export interface Question {
  readonly id: string;
  readonly key: string;
  readonly request: ApprovalRequest;
  /** Whose turn asks; null where nobody has a name. */
  readonly askedOf: string | null;
}

/** What agents ask people to allow, by conversation: the oldest question is answered first, and silence is a no. */
export class Approvals {
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  readonly #rule: Config['access']['approvals'];
  readonly #pending = new Map<string, Pending[]>();
  readonly #watchers = new Set<(asked: PendingApproval) => void>();

  constructor(timers: Timers, timeoutMs: number, rule: Config['access']['approvals']) {
    this.#timers = timers;
    this.#rule = rule;
    this.#timeoutMs = timeoutMs;
  }

  ask(question: Question, signal: AbortSignal): Promise<Approval> {
    const { key } = question;
    const { promise: settled, resolve } = Promise.withResolvers<Approval>();
    const settle = (approval: Approval): void => {
      cancel();
      signal.removeEventListener('abort', abandon);
      this.#remove(key, pending);
      resolve(approval);
    };
    const abandon = (): void => settle({ allowed: false, reason: 'the turn was stopped' });
    const pending: Pending = { ...question, settled, settle };
    const cancel = this.#timers.after(this.#timeoutMs, () => {
      settle({ allowed: false, reason: `nobody answered within ${formatDuration(this.#timeoutMs)}` });
    });
    signal.addEventListener('abort', abandon, { once: true });
    this.#pending.set(key, [...(this.#pending.get(key) ?? []), pending]);
    for (const watcher of this.#watchers) watcher(pending);
    return settled;
  }

  /** Hears of every question in this process: for a door whose people are not written to. */
  watch(watcher: (asked: PendingApproval) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Answers the oldest question of a conversation; null when there is none. */
  answer(key: string, approval: Approval, by: Answerer): Answered {
    return this.#settle((this.#pending.get(key) ?? [])[0], approval, by);
  }

  /** Answers one question, by the button under it. */
  answerById(id: string, approval: Approval, by: Answerer): Answered {
    const found = [...this.#pending.values()].flat().find((pending) => pending.id === id);
    return this.#settle(found, approval, by);
  }

  /** What a conversation is being asked. */
  pendingOf(key: string): readonly PendingApproval[] {
    return this.#pending.get(key) ?? [];
  }

  #remove(key: string, pending: Pending): void {
    const left = (this.#pending.get(key) ?? []).filter((other) => other !== pending);
    if (left.length === 0) this.#pending.delete(key);
    else this.#pending.set(key, left);
  }

  #settle(pending: Pending | undefined, approval: Approval, by: Answerer): Answered {
    if (pending === undefined) return null;
    const right = mayAnswer(by, pending.askedOf, approval.allowed, this.#rule);
    if (right !== 'yes') return right;
    pending.settle(approval);
    return pending.request;
  }
}
