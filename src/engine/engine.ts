import type { StartedRun, StartRunArgs } from '../cron/job-store.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { ForwardArgs } from '../inbound/submission-store.ts';
import type { Command, TurnResult } from '../lifecycle/commands.ts';
import type { Session, SessionWithTurns } from '../lifecycle/session.ts';
import type { ResumeReason, Trigger, TurnOutcome } from '../lifecycle/states.ts';
import type { WriteResult } from '../store/catalogue.ts';
import type { ConversationRef, ReceiveArgs, Received } from '../store/transactions/conversations.ts';
import type { Deleted } from '../store/transactions/deletion.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import type {
  ContinueArgs,
  EndArgs,
  PlainCommand,
  ResetArgs,
  SlashCommand,
  StartArgs,
} from '../store/transactions/session-commands.ts';
import type { CommandContext } from '../store/transactions/sessions.ts';
import type { FinishArgs } from '../store/transactions/turns.ts';
import { type Hold, overRatherThanUnknown } from './holdings.ts';
import { type EngineOptions, Instance } from './instance.ts';
import { readOwnTranscript, readTranscript } from './transcript.ts';

/** A message for a conversation, as the outside hands it in. */
export type Inbound = Pick<
  ReceiveArgs,
  'conversation' | 'text' | 'originRef' | 'refTtlMs' | 'by' | 'userName' | 'before' | 'files' | 'reply'
> & {
  /** Begin its turn at once when the session is free (default). */
  readonly begin?: boolean;
};

/** What a turn produced. */
export type Finished = TurnResult & Partial<Pick<FinishArgs, 'error' | 'messages' | 'deliveries'>>;

/** How a transcript was compressed, for its `session:compress`. */
type Compression = Omit<Extract<Command, { name: 'compress' }>, 'name' | 'epoch'>;

const ABSORBED = 'Added to the turn that was running; its reply answers both.';

/** One process's part in the life of sessions: every verb is one transaction of the store under this instance's lease. */
export class Engine extends Instance {
  /** Takes part under a fresh instance id. */
  static async boot(options: EngineOptions): Promise<Engine> {
    await options.store.write('bootInstance', { facts: options.instance, ttlMs: options.leaseTtlMs });
    return new Engine(options);
  }

  /** Starts a session of its own, outside any arriving message. */
  start(
    conversation: ConversationRef,
    facts: Pick<StartArgs, 'parentId' | 'lineage' | 'title'> = {},
  ): Promise<Session> {
    const ids = { context: this.commandContext(), sessionId: this.ids.session() };
    return this.holdings.taking(this.store.write('startSession', { ...ids, conversation, ...facts }), (session) =>
      this.holdings.note(session, session.attached),
    );
  }

  /** Journals a message before anybody acknowledges it, and begins its turn when the session is free. */
  receive({ begin = true, ...message }: Inbound): Promise<Received> {
    const ids = { context: this.commandContext(), turnId: this.ids.turn(), newSessionId: this.ids.session() };
    return this.holdings.taking(this.store.write('receive', { ...ids, ...message, begin }), ({ session, begun }) =>
      this.holdings.note(session, begun, begun),
    );
  }

  /** Sends on what a program submitted, without an agent, in a session that starts and ends with it. */
  forward(
    submission: Pick<ForwardArgs, 'conversation' | 'text' | 'deliveries' | 'ttlMs'>,
  ): Promise<WriteResult<'forwardSubmission'>> {
    const ids = { context: this.commandContext(), newSessionId: this.ids.session() };
    return this.store.write('forwardSubmission', { ...ids, ...submission });
  }

  /** Starts the run of a claimed tick, and with it a session that dies with this process; null if the claim was lost. */
  startRun(tick: Omit<StartRunArgs, 'context' | 'turnId' | 'newSessionId'>): Promise<StartedRun | null> {
    const ids = { turnId: this.ids.turn(), newSessionId: this.ids.session() };
    return this.settle((context) =>
      this.holdings.taking(this.store.write('startRun', { context, ...ids, ...tick }), (started) => {
        if (started?.type === 'run') this.holdings.note(started.received.session, true);
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
    this.holdings.noteOver(loaded.session);
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

  /** Ends a turn that was cut and is not gone on with: what is said of it is its response, and is sent. */
  giveUp(
    sessionId: string,
    turnId: string,
    response: string,
    left: Pick<FinishArgs, 'messages' | 'deliveries'>,
  ): Promise<SessionWithTurns> {
    const result = { outcome: 'interrupted', response, model: null, usage: null } as const;
    return this.settle((context) =>
      this.store.write('finishTurn', { context, sessionId, turnId, epoch: null, result, error: null, ...left }),
    );
  }

  /** A waiting message is taken into the turn that runs, as these rows: it gets no run of its own. */
  absorb(sessionId: string, turnId: string, messages: readonly MessageToAppend[]): Promise<SessionWithTurns> {
    return this.#settleWaiting(sessionId, turnId, 'done', ABSORBED, null, messages);
  }

  /** Waiting messages become part of an older one that waits too: pieces of what is one message to its writer. */
  join(sessionId: string, into: string, turnIds: readonly string[]): Promise<SessionWithTurns> {
    const context = this.commandContext();
    return this.store.write('joinTurns', { context, sessionId, into, turnIds, response: ABSORBED });
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
    const loaded = await this.#commandTurn(hold, { name: 'interrupt', reason, epoch: hold.epoch });
    this.holdings.noteOver(loaded.session);
    return loaded;
  }

  /** An operator parks a session: what is said in it waits until `release`. */
  suspend(sessionId: string): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'suspend', reason: 'operator' });
  }

  /** Opens a parked session again; what waited in it may begin. */
  release(sessionId: string): Promise<SessionWithTurns> {
    return this.#command(sessionId, { name: 'reopen' });
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

  /** Records that the transcript of a running turn was compressed. */
  compress(hold: Hold, facts: Compression): Promise<SessionWithTurns> {
    return this.#commandTurn(hold, { name: 'compress', ...facts, epoch: hold.epoch });
  }

  /** The same where no turn runs. */
  compressed(sessionId: string, facts: Compression): Promise<SessionWithTurns> {
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
    facts: Pick<ResetArgs, 'title' | 'slash'> = {},
  ): Promise<WriteResult<'resetSession'>> {
    const ids = { context: this.commandContext(), newSessionId: this.ids.session() };
    return this.holdings.taking(
      this.store.write('resetSession', { ...ids, conversation, ...facts }),
      ({ session, ended }) => this.holdings.noteSuccessor(session, ended),
    );
  }

  /** Moves messages that wait in a session that cannot go on into a fresh one; null when it can go on. */
  rollOver(sessionId: string): Promise<WriteResult<'rollOver'>> {
    const context = this.commandContext();
    return this.store.write('rollOver', { context, sessionId, newSessionId: this.ids.session() });
  }

  /** Continues an earlier session in a new one that sees its transcript: `resume` or `branch`. */
  continueFrom(
    fromId: string,
    lineage: ContinueArgs['lineage'],
    facts: Pick<ContinueArgs, 'trigger' | 'title' | 'conversation' | 'slash'>,
  ): Promise<WriteResult<'continueSession'>> {
    const ids = { context: this.commandContext(), newSessionId: this.ids.session() };
    return this.holdings.taking(
      this.store.write('continueSession', { ...ids, fromId, lineage, ...facts }),
      ({ session, ended, created }) => this.holdings.noteSuccessor(session, ended, created),
    );
  }

  /** Ends a session; ending it twice returns the first end. */
  async end(
    sessionId: string,
    facts: Pick<EndArgs, 'reason' | 'trigger' | 'cause' | 'epoch'>,
    context: CommandContext = this.commandContext(),
  ): Promise<WriteResult<'endSession'>> {
    const result = await this.store.write('endSession', { context, sessionId, ...facts });
    this.holdings.drop(sessionId);
    return result;
  }

  /** Removes a session, an open one after its end, and what was said in it from everywhere. Its events stay. */
  async delete(sessionId: string, trigger: Trigger): Promise<Deleted> {
    const result = await this.store.write('deleteSession', { context: this.commandContext(), sessionId, trigger });
    this.holdings.drop(sessionId);
    for (let first = true; await this.store.write('cleanIndex', { first }); first = false);
    return result;
  }

  /** The transcript a session sees: its own, behind those of the sessions it continues; or its own alone. */
  transcript(sessionId: string, which: 'all' | 'own' = 'all'): AsyncGenerator<Message> {
    return which === 'all' ? readTranscript(this.store, sessionId) : readOwnTranscript(this.store, sessionId);
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
    return this.holdings.taking(write, ({ session }) => this.holdings.note(session, takes, command.name === 'begin'));
  }

  #commandTurn(hold: Hold, command: PlainCommand): Promise<SessionWithTurns> {
    const { sessionId } = hold;
    return this.#settleTurn(hold, (context) => this.store.write('command', { context, sessionId, command }));
  }

  /** Writes what a running turn did until it is known. */
  async #settleTurn<T>(hold: Hold, write: (context: CommandContext) => Promise<T>): Promise<T> {
    try {
      return await this.settle(write);
    } catch (thrown) {
      const error = overRatherThanUnknown(hold, thrown);
      const isTurnOver = hasCode(error, 'turn_not_found', 'illegal_move');
      const isLost = isTurnOver
        ? !(await this.#owns(hold).catch(() => true))
        : hasCode(error, 'fenced', 'session_ended');
      this.holdings.noteUnsettled(hold, isLost);
      throw error;
    }
  }

  /** Whether a session is still this instance's after another process ended its turn: attached, or with a background. */
  async #owns({ sessionId, epoch }: Hold): Promise<boolean> {
    const session = await this.settle(() => this.store.read('getSession', { sessionId }));
    return session?.owner === this.instance && session.epoch === epoch;
  }
}
