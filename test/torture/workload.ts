import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../../src/engine/engine.ts';
import type { Hold } from '../../src/engine/holdings.ts';
import { isLeaseLost } from '../../src/engine/instance.ts';
import type { ErrorCode } from '../../src/errors/codes.ts';
import { hasCode } from '../../src/errors/moirai-error.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import { between, type Random } from '../power-cut/random.ts';
import { type Fact, type JournalLine, type LineFile, type Seen, seenOf } from './journal.ts';
import { PLATFORMS, SHARED_CHATS, type WorkerTask } from './settings.ts';
import { describeError, type Tenure } from './tenure.ts';

/** A turn this process runs. */
export interface Run extends Hold {
  readonly engine: Engine;
  readonly turnId: string;
}

/** What an acknowledged write makes true. */
export interface Truth {
  readonly facts: readonly Fact[];
  readonly seen: readonly Session[];
}

/** Losing a race is a normal answer; everything else is not. */
const RACES: readonly ErrorCode[] = ['fenced', 'illegal_move', 'session_ended', 'turn_not_found', 'key_busy'];
const REMEMBERED = 150;

/** What the deeds of one process share: what it holds, whom it knows, and the journal it must write first. */
export class Workload {
  readonly tenure: Tenure;
  readonly random: Random;
  readonly task: WorkerTask;
  /** Turns this process runs and has not settled. */
  readonly runs: Run[] = [];
  /** Turns it gave up: every write for them must be refused. */
  readonly stale: Run[] = [];
  readonly #journal: LineFile<JournalLine>;
  readonly #known: Session[] = [];
  readonly #refs: { ref: string; key: string }[] = [];
  #tags = 0;

  constructor(tenure: Tenure, task: WorkerTask, journal: LineFile<JournalLine>, random: Random) {
    this.tenure = tenure;
    this.task = task;
    this.random = random;
    this.#journal = journal;
  }

  /** A text that is nowhere else: what carries it was written by one command, and may be there once. */
  tag(): string {
    return `${this.task.worker}.${this.task.incarnation}.${++this.#tags}`;
  }

  /**
   * Does one thing and writes down how it went before anything else is done. Null when it was refused; `tag` is then
   * not to be found in the store.
   */
  async attempt<T>(
    op: string,
    engine: Engine,
    tag: string | null,
    act: () => Promise<T>,
    truth: (value: T) => Truth,
    races: readonly ErrorCode[] = RACES,
  ): Promise<T | null> {
    let value: T;
    try {
      value = await act();
    } catch (thrown) {
      await this.#refused(op, engine, tag, thrown, races);
      return null;
    }
    const { facts, seen } = truth(value);
    this.#journal.write({ line: 'ack', op, facts, seen: seen.map((session): Seen => seenOf(session)) });
    for (const session of seen) this.remember(session);
    return value;
  }

  wrong(what: string): void {
    this.#journal.write({ line: 'wrong', what });
  }

  async #refused(
    op: string,
    engine: Engine,
    tag: string | null,
    thrown: unknown,
    races: readonly ErrorCode[],
  ): Promise<void> {
    const raced = hasCode(thrown, ...races);
    if (!raced && !this.tenure.excuses(thrown)) this.wrong(`${op}: ${describeError(thrown)}`);
    // Only then may it have happened after all.
    const unknown = hasCode(thrown, 'store_outcome_unknown');
    if (tag !== null && !unknown) {
      const code = describeError(thrown).split(':')[0] ?? '';
      this.#journal.write({ line: 'refused', op, tag, code });
    }
    if (!raced) await sleep(20);
    if (isLeaseLost(thrown)) await this.tenure.renew(engine);
  }

  remember(session: Session): void {
    if (this.#known.length < REMEMBERED) this.#known.push(session);
    else this.#known[between(this.random, 0, REMEMBERED - 1)] = session;
  }

  /** A session this process has seen: open or long ended, its own or another's. */
  someSession(): Session | undefined {
    return this.pick(this.#known);
  }

  /** A turn that is taken off the list: whoever takes it settles it. */
  takeRun(): Run | undefined {
    if (this.runs.length === 0) return undefined;
    const [run] = this.runs.splice(between(this.random, 0, this.runs.length - 1), 1);
    return run;
  }

  /** It is known now that this turn is not ours any more; unless somebody here is about to settle it anyway. */
  giveUp(run: Run): void {
    const index = this.runs.indexOf(run);
    if (index >= 0) this.stale.push(...this.runs.splice(index, 1));
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.random() * list.length)];
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A conversation: mostly one that other workers write to as well. */
  someConversation(): ConversationRef {
    const platform = this.pick(PLATFORMS) ?? 'calm';
    const chat = this.chance(0.85) ? `${between(this.random, 1, SHARED_CHATS)}` : `own-${this.tag()}`;
    return conversationIn(platform, chat);
  }

  /** A conversation that dies with this process. */
  attachedConversation(kind: 'cli' | 'batch' | 'child'): ConversationRef {
    const key = `agent:main:${kind}:dm:${this.tag()}`;
    return { key, kind, platform: kind, userId: null, origin: null, attached: true };
  }

  /**
   * The name of a message on its platform, and its conversation. Mostly new; sometimes one that was received before,
   * and sometimes one that another worker receives at the same moment.
   */
  message(): { ref: string; conversation: ConversationRef; repeatable: boolean } {
    const again = this.chance(0.05) ? this.pick(this.#refs) : undefined;
    if (again !== undefined) return { ref: again.ref, conversation: conversationOfKey(again.key), repeatable: true };
    if (this.chance(0.05)) {
      const n = Math.floor(Date.now() / 100) * 3 + between(this.random, 0, 2);
      const platform = PLATFORMS[n % PLATFORMS.length] ?? 'calm';
      return {
        ref: `shared-${n}`,
        conversation: conversationIn(platform, `${(n % SHARED_CHATS) + 1}`),
        repeatable: true,
      };
    }
    return { ref: this.tag(), conversation: this.someConversation(), repeatable: false };
  }

  received(ref: string, key: string): void {
    this.#refs.push({ ref, key });
    if (this.#refs.length > REMEMBERED) this.#refs.shift();
  }
}

function conversationIn(platform: string, chat: string): ConversationRef {
  const origin = { chat, platform };
  return {
    key: `agent:main:${platform}:dm:${chat}`,
    kind: 'chat',
    platform,
    userId: `user-${chat}`,
    origin,
    attached: false,
  };
}

function conversationOfKey(key: string): ConversationRef {
  const [, , platform = '', , chat = ''] = key.split(':');
  return conversationIn(platform, chat);
}
