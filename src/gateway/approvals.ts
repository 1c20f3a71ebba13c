import type { Approval, ApprovalRequest } from '../agent/runner.ts';
import type { Timers } from '../events/timers.ts';
import { formatDuration } from '../lifecycle/duration.ts';

interface Pending {
  readonly request: ApprovalRequest;
  readonly settle: (approval: Approval) => void;
}

/** A question as whoever is there hears it. */
export interface Asked {
  readonly key: string;
  readonly request: ApprovalRequest;
  /** What came of it, whoever answered. */
  readonly settled: Promise<Approval>;
}

/** What agents ask people to allow, by conversation: the oldest question is answered first, and silence is a no. */
export class Approvals {
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  readonly #pending = new Map<string, Pending[]>();
  readonly #watchers = new Set<(asked: Asked) => void>();

  constructor(timers: Timers, timeoutMs: number) {
    this.#timers = timers;
    this.#timeoutMs = timeoutMs;
  }

  ask(key: string, request: ApprovalRequest, signal: AbortSignal): Promise<Approval> {
    const settled = new Promise<Approval>((resolve) => {
      const settle = (approval: Approval): void => {
        cancel();
        signal.removeEventListener('abort', abandon);
        this.#remove(key, pending);
        resolve(approval);
      };
      const abandon = (): void => settle({ allowed: false, reason: 'the turn was stopped' });
      const pending: Pending = { request, settle };
      const cancel = this.#timers.after(this.#timeoutMs, () => {
        settle({ allowed: false, reason: `nobody answered within ${formatDuration(this.#timeoutMs)}` });
      });
      signal.addEventListener('abort', abandon, { once: true });
      this.#pending.set(key, [...(this.#pending.get(key) ?? []), pending]);
    });
    for (const watcher of this.#watchers) watcher({ key, request, settled });
    return settled;
  }

  /** Hears of every question in this process: for a door whose people are not written to. */
  watch(watcher: (asked: Asked) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Answers the oldest question of a conversation; null when there is none. */
  answer(key: string, approval: Approval): ApprovalRequest | null {
    const [oldest] = this.#pending.get(key) ?? [];
    oldest?.settle(approval);
    return oldest?.request ?? null;
  }

  /** What a conversation is being asked. */
  pendingOf(key: string): readonly ApprovalRequest[] {
    return (this.#pending.get(key) ?? []).map(({ request }) => request);
  }

  #remove(key: string, pending: Pending): void {
    const left = (this.#pending.get(key) ?? []).filter((other) => other !== pending);
    if (left.length === 0) this.#pending.delete(key);
    else this.#pending.set(key, left);
  }
}
