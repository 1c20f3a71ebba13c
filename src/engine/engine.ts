import type { StartedRun, StartRunArgs } from '../cron/job-store.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { TurnResult } from '../lifecycle/commands.ts';
import type { EventDraft } from '../lifecycle/events.ts';
import type { Session, SessionWithTurns } from '../lifecycle/session.ts';
import {
  END_REASONS,
  type EndCause,
  type EndReason,
  type Lineage,
  type ResumeReason,
  type Trigger,
  type TurnOutcome,
} from '../lifecycle/states.ts';
import { ClaimRegistry } from '../queue/claim-registry.ts';
import type { QueueDeps } from '../queue/queue-worker.ts';
import { type RetryDeps, retryUntilKnown } from '../queue/retry-until-known.ts';
import { processTimers } from '../queue/timers.ts';
import type { WriteResult } from '../store/catalogue.ts';
import type { Store } from '../store/port.ts';
import type {
  ContinueArgs,
  ConversationRef,
  PlainCommand,
  ReceiveArgs,
  Received,
  SlashCommand,
} from '../store/transactions/conversations.ts';
import type { Deleted, PruneRule } from '../store/transactions/deletion.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { InstanceFacts, Reaped } from '../store/transactions/liveness.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import type { CommandContext } from '../store/transactions/sessions.ts';
import { findDead } from './find-dead.ts';
import { type HostFacts, isProvenDead } from './host.ts';
import type { Ids } from './ids.ts';
import { readOwnTranscript, readTranscript } from './transcript.ts';

export interface EngineOptions {
  readonly store: Store;
  readonly ids: Ids;
  readonly instance: InstanceFacts;
  readonly leaseTtlMs: number;
  /** Replaced in simulations, where processes are not real. */
  readonly provenDead?: typeof isProvenDead;
  /** Time and chance for what is repeated, and who hears of it; the process's own unless given. */
  readonly retry?: Pick<RetryDeps, 'timers' | 'random' | 'failed'>;
}

/** A message for a conversation, as the outside hands it in. */
export type Inbound = Pick<ReceiveArgs, 'conversation' | 'text' | 'originRef' | 'refTtlMs' | 'by' | 'before'> & {
  /** Begin its turn at once when the session is free (default). */
  readonly begin?: boolean;
};

/** What a turn produced. */
export type Finished = TurnResult & {
  readonly error?: string | null;
  readonly messages?: readonly MessageToAppend[];
  readonly deliveries?: readonly DeliveryToMake[];
};

/** A session this process holds, at the epoch it got it: what every fenced write has to show. */
export interface Hold {
  readonly sessionId: string;
  readonly epoch: number;
}

const ABSORBED = 'Added to the turn that was running; its reply answers both.';
const REAP_BATCH = 100;
const EXPIRE_BATCH = 100;
const PRUNE_BATCH = 200;

/**
 * One process's part in the life of sessions: every verb is one transaction of the store under this instance's lease.
 * It keeps one thing in memory, the sessions it holds, and the store is right where the two differ.
 */
export class Engine {
  readonly store: Store;
  readonly instance: string;
  readonly #ids: Ids;
  readonly #host: HostFacts;
  readonly #leaseTtlMs: number;
  readonly #provenDead: typeof isProvenDead;
  readonly #held = new Map<string, number>();
  /** Those of them in which it runs a turn, with the epoch it began it at. */
  readonly #begun = new Map<string, number>();
  readonly #takings = new Set<Promise<unknown>>();
  readonly #retry: RetryDeps;
  #stopped = false;
  /** The claims of queue lanes this process knows of. */
  readonly claims = new ClaimRegistry();

  private constructor(options: EngineOptions) {
    this.store = options.store;
    this.instance = options.instance.id;
    this.#ids = options.ids;
    this.#host = options.instance;
    this.#leaseTtlMs = options.leaseTtlMs;
    this.#provenDead = options.provenDead ?? isProvenDead;
    const retry = options.retry ?? { timers: processTimers, random: Math.random, failed: () => undefined };
    this.#retry = { ...retry, stopped: () => this.#stopped };
  }

  /** Takes part under a fresh instance id. */
  static async boot(options: EngineOptions): Promise<Engine> {
    await options.store.write('bootInstance', { facts: options.instance, ttlMs: options.leaseTtlMs });
    return new Engine(options);
  }

  /** A fresh command id under this instance's lease. */
  commandContext(): CommandContext {
    return { instanceId: this.instance, commandId: this.#ids.command() };
  }

  /** What a worker of a queue needs of this process; `failed` hears of what is tried again. */
  queueDeps(failed: QueueDeps['failed']): QueueDeps {
    const { timers, random } = this.#retry;
    return { timers, random, commandContext: () => this.commandContext(), claims: this.claims, failed };
  }

  /** Starts a session of its own, outside any arriving message. */
  start(
    conversation: ConversationRef,
    facts: { parentId?: string; lineage?: Lineage; title?: string } = {},
  ): Promise<Session> {
    const { parentId = null, lineage = null, title = null } = facts;
    const sessionId = this.#ids.session();
    const context = this.commandContext();
    return this.#taking(
      this.store.write('startSession', { context, sessionId, conversation, parentId, lineage, title }),
      (session) => this.#note(session, session.attached),
    );
  }

  /** Journals a message before anybody acknowledges it, and begins its turn when the session is free. */
  receive(inbound: Inbound): Promise<Received> {
    const { begin = true, ...message } = inbound;
    const turnId = this.#ids.turn();
    const newSessionId = this.#ids.session();
    return this.#taking(
      this.store.write('receive', { context: this.commandContext(), ...message, begin, turnId, newSessionId }),
      (received) => this.#note(received.session, received.begun, received.begun),
    );
  }

  /**
   * Repeats a write that settles something until the store says what came of it, under one command id: done twice it is
   * done once.
   */
  settle<T>(write: (context: CommandContext) => Promise<T>): Promise<T> {
    const context = this.commandContext();
    return retryUntilKnown(() => write(context), this.#retry);
  }

  /** Starts the run of a claimed tick, and with it a session that dies with this process; null if the claim was lost. */
  startRun(tick: Omit<StartRunArgs, 'context' | 'turnId' | 'newSessionId'>): Promise<StartedRun | null> {
    const ids = { turnId: this.#ids.turn(), newSessionId: this.#ids.session() };
    return this.settle((context) =>
      this.#taking(this.store.write('startRun', { context, ...ids, ...tick }), (started) => {
        if (started?.type === 'run') this.#note(started.received.session, true);
      }),
    );
  }

  /** Begins a turn that waits or was cut. */
  begin(sessionId: string, turnId: string): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'begin', turnId });
  }

  /** Ends a turn with what it produced; repeated until the store has taken it. */
  async finish(hold: Hold, turnId: string, finished: Finished): Promise<SessionWithTurns> {
    const { error = null, messages = [], deliveries = [], ...result } = finished;
    const loaded = await this.#settleTurn(hold, (context) =>
      this.store.write('finishTurn', { context, ...hold, turnId, result, error, messages, deliveries }),
    );
    this.#noteOver(loaded.session);
    return loaded;
  }

  /** Drops a turn that has not begun, or was cut. */
  dropTurn(
    sessionId: string,
    turnId: string,
    outcome: 'failed' | 'interrupted',
    error: string,
  ): Promise<SessionWithTurns> {
    return this.#settleWaiting(sessionId, turnId, outcome, null, error);
  }

  /** A waiting message is taken into the turn that runs, as these rows: it gets no run of its own. */
  absorb(sessionId: string, turnId: string, messages: readonly MessageToAppend[]): Promise<SessionWithTurns> {
    return this.#settleWaiting(sessionId, turnId, 'done', ABSORBED, null, messages);
  }

  /** Waiting messages become part of an older one that waits too: pieces of what is one message to who wrote them. */
  join(sessionId: string, into: string, turnIds: readonly string[]): Promise<SessionWithTurns> {
    return this.store.write('joinTurns', {
      context: this.commandContext(),
      sessionId,
      into,
      turnIds,
      response: ABSORBED,
    });
  }

  /** Adds to the transcript in the middle of a turn; repeated until the store has taken it. */
  append(hold: Hold, messages: readonly MessageToAppend[]): Promise<number> {
    return this.#settleTurn(hold, (context) => this.store.write('appendMessages', { context, ...hold, messages }));
  }

  /** Adds to the transcript beside any turn: what a command leaves behind; repeated until the outcome is known. */
  appendBeside(sessionId: string, messages: readonly MessageToAppend[]): Promise<number> {
    return this.settle((context) => this.store.write('appendMessages', { context, sessionId, epoch: null, messages }));
  }

  /** Interrupts a running turn so that it can be resumed; repeated until the store has taken it. */
  async interrupt(hold: Hold, reason: ResumeReason): Promise<SessionWithTurns> {
    const { sessionId, epoch } = hold;
    const command = { name: 'interrupt', reason, epoch } as const;
    const loaded = await this.#settleTurn(hold, (context) =>
      this.store.write('command', { context, sessionId, command }),
    );
    this.#noteOver(loaded.session);
    return loaded;
  }

  /** Parks a session: the next message starts a fresh one. */
  suspend(sessionId: string): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'suspend' });
  }

  setTitle(sessionId: string, title: string | null): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'title', title });
  }

  /** Records that a slash command ran. */
  note(sessionId: string, slash: SlashCommand): Promise<SessionWithTurns> {
    if (!/^[a-z][a-z0-9_-]*$/.test(slash.command)) {
      throw new MoiraiError('bad_input', `"${slash.command}" is not the name of a command`);
    }
    return this.#command(sessionId, { name: 'note', ...slash });
  }

  compress(hold: Hold, facts: { beforeTokens: number; afterTokens: number; count: number }): Promise<SessionWithTurns> {
    const { sessionId, epoch } = hold;
    const command = { name: 'compress', ...facts, epoch } as const;
    return this.#settleTurn(hold, (context) => this.store.write('command', { context, sessionId, command }));
  }

  /** The same where nobody runs a turn. */
  compressed(
    sessionId: string,
    facts: { beforeTokens: number; afterTokens: number; count: number },
  ): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'compress', ...facts, epoch: null });
  }

  /** Activity without a turn. Only a user's moves the deadline. */
  touch(sessionId: string, by: 'user' | 'system'): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'touch', by });
  }

  /** Says how many background processes a session has here; while there are some, it does not expire. */
  background(sessionId: string, running: number): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'background', running, epoch: null });
  }

  /** A user asks for a fresh session. */
  reset(
    conversation: ConversationRef,
    facts: { title?: string; slash?: SlashCommand } = {},
  ): Promise<{ session: Session; ended: string | null }> {
    const { title = null, slash = null } = facts;
    const newSessionId = this.#ids.session();
    const context = this.commandContext();
    return this.#taking(
      this.store.write('resetSession', { context, conversation, newSessionId, title, slash }),
      ({ session, ended }) => this.#noteSuccessor(session, ended),
    );
  }

  /** Moves messages that wait in a session that cannot go on into a fresh one; null when it can go on. */
  rollOver(sessionId: string): Promise<WriteResult<'rollOver'>> {
    return this.store.write('rollOver', {
      context: this.commandContext(),
      sessionId,
      newSessionId: this.#ids.session(),
    });
  }

  /** Continues an earlier session in a new one that sees its transcript: `resume` or `branch`. */
  continueFrom(
    fromId: string,
    lineage: ContinueArgs['lineage'],
    facts: { trigger: Trigger; title?: string; conversation?: ConversationRef; slash?: SlashCommand },
  ): Promise<{ session: Session; ended: string | null; created: boolean }> {
    const { trigger, title = null, conversation = null, slash = null } = facts;
    const newSessionId = this.#ids.session();
    const context = this.commandContext();
    return this.#taking(
      this.store.write('continueSession', {
        context,
        fromId,
        lineage,
        newSessionId,
        title,
        trigger,
        conversation,
        slash,
      }),
      ({ session, ended, created }) => this.#noteSuccessor(session, ended, created),
    );
  }

  /** Ends a session; ending it twice returns the first end. */
  async end(
    sessionId: string,
    facts: { reason: EndReason; trigger: Trigger; cause?: EndCause; epoch?: number },
    context: CommandContext = this.commandContext(),
  ): Promise<{ session: Session; already: boolean }> {
    const { reason, trigger, cause = null, epoch = null } = facts;
    assertReason(reason);
    const result = await this.store.write('endSession', {
      context,
      sessionId,
      reason,
      cause,
      trigger,
      epoch,
    });
    this.#drop(sessionId);
    return result;
  }

  /** Removes a session, an open one after its end. Its events stay. */
  async delete(sessionId: string, trigger: Trigger): Promise<Deleted> {
    const result = await this.store.write('deleteSession', { context: this.commandContext(), sessionId, trigger });
    this.#drop(sessionId);
    return result;
  }

  /** Removes one batch of ended sessions, and says how many they were; 0 when there is nothing left to remove. */
  async prune(rule: PruneRule): Promise<number> {
    const { removed } = await this.store.write('pruneSessions', {
      context: this.commandContext(),
      rule,
      limit: PRUNE_BATCH,
    });
    return removed.length;
  }

  /** Writes an event about this instance. */
  async announce(draft: Extract<EventDraft, { type: `gateway:${string}` }>): Promise<void> {
    const context = this.commandContext();
    const event = { id: `${this.instance}:${draft.type}:${context.commandId}`, draft };
    await this.store.write('announceInstance', { context, event });
  }

  /** The transcript a session sees: its own, behind those of the sessions it continues; or its own alone. */
  transcript(sessionId: string, which: 'all' | 'own' = 'all'): AsyncGenerator<Message> {
    return which === 'all' ? readTranscript(this.store, sessionId) : readOwnTranscript(this.store, sessionId);
  }

  /** Messages with all these words. What was written before the call is found. */
  async search(text: string, limit: number): Promise<Message[]> {
    while (await this.store.write('indexMessages', { limit: 2000 })) {
      // The index is brought up to date in pieces, so that nobody waits long behind it.
    }
    return this.store.read('searchMessages', { text, limit });
  }

  /** Renews the lease. Throws `lease_lost` when it ran out: then this instance is over. */
  async beat(): Promise<void> {
    await this.store.write('beat', { instance: this.instance, ttlMs: this.#leaseTtlMs });
  }

  /** Finds dead instances and settles what they left. */
  async reap(): Promise<Reaped> {
    const total: Reaped = { lost: [], reaped: [], interrupted: [], released: [], more: false };
    const provenDead = await findDead(this.store, this.#host, this.instance, this.#provenDead);
    if (provenDead === null) return total;
    for (let more = true; more; ) {
      const batch = await this.store.write('reap', { context: this.commandContext(), provenDead, limit: REAP_BATCH });
      total.lost.push(...batch.lost);
      total.reaped.push(...batch.reaped);
      total.interrupted.push(...batch.interrupted);
      total.released.push(...batch.released);
      // A batch that got nothing done met sessions somebody else is settling right now.
      more = batch.more && batch.reaped.length + batch.interrupted.length + batch.released.length > 0;
    }
    return total;
  }

  /** Ends one batch of what is overdue. */
  expire(trigger: 'watcher' | 'startup'): Promise<{ ended: string[]; more: boolean }> {
    return this.store.write('expire', { context: this.commandContext(), limit: EXPIRE_BATCH, trigger });
  }

  /**
   * Settles what the rows say this instance holds and it does not know of: sessions whose takeover it never learned of,
   * turns it began without learning of it or lost track of, and claims of queue lanes.
   */
  async reconcile(): Promise<number> {
    const rows = await this.store.read('heldBy', { instance: this.instance });
    // A reply that is on its way is not lost: wait for those that were under way when the rows were read.
    await Promise.allSettled(this.#takings);
    const strays = rows.sessions
      .filter(({ id, epoch, running }) => (running ? this.#begun.get(id) !== epoch : !this.#held.has(id)))
      .map(({ id, epoch }) => ({ id, epoch, held: this.#held.has(id) }));
    const claims = rows.claims.filter((claim) => !this.claims.knows(claim));
    if (strays.length + claims.length === 0) return 0;
    const context = this.commandContext();
    const settled = await this.store.write('reconcile', { context, sessions: strays, claims });
    for (const id of settled.interrupted) this.#drop(id);
    return strays.length + claims.length;
  }

  /** Leaves in order. Sessions still held are settled by whoever is next. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.store.write('stopInstance', { instance: this.instance });
    this.#held.clear();
    this.#begun.clear();
  }

  /** The sessions this process holds. */
  get holds(): readonly Hold[] {
    return [...this.#held].map(([sessionId, epoch]) => ({ sessionId, epoch }));
  }

  #settleWaiting(
    sessionId: string,
    turnId: string,
    outcome: TurnOutcome,
    response: string | null,
    error: string | null,
    messages: readonly MessageToAppend[] = [],
  ): Promise<SessionWithTurns> {
    const result = { outcome, response, model: null, usage: null };
    const left = { messages, deliveries: [] };
    const context = this.commandContext();
    return this.store.write('finishTurn', { context, sessionId, turnId, epoch: null, result, error, ...left });
  }

  #command(sessionId: string, command: PlainCommand): Promise<SessionWithTurns> {
    const write = this.store.write('command', { context: this.commandContext(), sessionId, command });
    const takes = command.name === 'begin' || (command.name === 'background' && command.running > 0);
    return this.#taking(write, (loaded) => this.#note(loaded.session, takes, command.name === 'begin'));
  }

  /**
   * Keeps the list of held sessions true. Only the write that takes a session puts it on the list: a row that names
   * this instance is no proof that anybody here knows of it, see `reconcile`.
   */
  #note(session: Session, taken: boolean, begun = false): void {
    if (session.owner !== this.instance) this.#drop(session.id);
    else if (taken) this.#held.set(session.id, session.epoch);
    if (begun && session.owner === this.instance) this.#begun.set(session.id, session.epoch);
  }

  #noteOver(session: Session): void {
    this.#begun.delete(session.id);
    this.#note(session, false);
  }

  #drop(sessionId: string): void {
    this.#held.delete(sessionId);
    this.#begun.delete(sessionId);
  }

  #noteSuccessor(session: Session, ended: string | null, created = true): void {
    if (ended !== null) this.#drop(ended);
    this.#note(session, created && session.attached);
  }

  /**
   * Writes the end of a turn until it is known. A holder that is refused holds no longer: somebody else went on, or it
   * was done already. One that gives up is not taken for the turn's runner any more: then `reconcile` settles the turn.
   */
  async #settleTurn<T>(hold: Hold, write: (context: CommandContext) => Promise<T>): Promise<T> {
    try {
      return await this.settle(write);
    } catch (thrown) {
      const error = overRatherThanUnknown(hold, thrown);
      const over = hasCode(error, 'fenced', 'session_ended', 'turn_not_found', 'illegal_move');
      if (over && this.#held.get(hold.sessionId) === hold.epoch) this.#drop(hold.sessionId);
      else if (this.#begun.get(hold.sessionId) === hold.epoch) this.#begun.delete(hold.sessionId);
      throw error;
    }
  }

  /** Watches a write that may make this instance an owner, so that `reconcile` does not take it for a lost one. */
  async #taking<T>(write: Promise<T>, note: (value: T) => void): Promise<T> {
    const noted = write.then((value) => {
      note(value);
      return value;
    });
    this.#takings.add(noted);
    try {
      return await noted;
    } finally {
      this.#takings.delete(noted);
    }
  }
}

/** What was held has been there: if it is gone, it was ended first, and then removed. */
function overRatherThanUnknown({ sessionId }: Hold, thrown: unknown): unknown {
  if (!hasCode(thrown, 'session_not_found')) return thrown;
  return new MoiraiError('session_ended', `session ${sessionId} ended and was removed`, { cause: thrown });
}

function assertReason(reason: string): void {
  if ((END_REASONS as readonly string[]).includes(reason)) return;
  throw new MoiraiError('bad_reason', `"${reason}" is not an end reason`, { details: { known: END_REASONS } });
}

/** True when this instance is over and the process must boot a new one. */
export function isLeaseLost(error: unknown): boolean {
  return hasCode(error, 'lease_lost');
}
