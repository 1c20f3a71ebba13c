import type { Inbound } from '../engine/engine.ts';
import { hasCode } from '../errors/moirai-error.ts';
import { isParked, type Session, type SessionWithTurns, type Turn } from '../lifecycle/session.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import { repeat } from '../queue/timers.ts';
import type { Received } from '../store/transactions/conversations.ts';
import { FailedStarts } from './failed-starts.ts';
import { beginNext } from './next-turn.ts';
import { stopwatch } from './observer.ts';
import { Pieces } from './pieces.ts';
import { TurnChannels } from './turn-channels.ts';
import { TurnControl } from './turn-control.ts';
import type { BusyMode, Receiving, StopReason, ToldStop, TurnRunDeps, TurnsOptions } from './turn-deps.ts';
import { TurnRun } from './turn-run.ts';

const ADOPT_MS = 3000;
const ADOPT_LIMIT = 500;
/** How long a turn that was told to stop may take to do so, before nobody waits for it any longer. */
const STOP_GRACE_MS = 5000;

/**
 * Runs turns: one at a time per session and in order, a bounded number at once, sessions that wait served by turns.
 * What waits is in the store; this class only remembers which sessions to look at.
 */
export class Turns {
  readonly channels: TurnChannels;
  readonly #options: TurnsOptions;
  readonly #runDeps: TurnRunDeps;
  readonly #running = new Map<string, TurnRun>();
  /** Sessions with something to do, the one that waited longest first. */
  readonly #waiting = new Set<string>();
  /** Sessions in which nothing may begin. */
  readonly #quiet = new Set<string>();
  readonly #control: TurnControl;
  readonly #pieces: Pieces;
  readonly #failedStarts: FailedStarts;
  /** Begun by a write that is still under way. */
  #starting = 0;
  #halted = false;
  #stopAdopting: () => void = () => undefined;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.channels = new TurnChannels(options.engine.store, options.timers, options.log);
    const { engine, timers, log } = options;
    this.#failedStarts = new FailedStarts(engine, options.notice);
    const { textWithFiles } = options.runDeps;
    this.#control = new TurnControl({
      ...{ engine, timers, log, textWithFiles },
      channels: this.channels,
      running: () => this.running,
    });
    this.#control.start();
    this.#pieces = new Pieces(options.timers, (sessionId) => this.wake(sessionId));
    this.#runDeps = {
      ...options.runDeps,
      engine: options.engine,
      timers: options.timers,
      log: options.log,
      takeSteering: (run) => this.#control.takeSteering(run),
    };
  }

  get running(): readonly TurnRun[] {
    return [...this.#running.values()];
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  runOf(sessionId: string): TurnRun | undefined {
    return this.#running.get(sessionId);
  }

  /**
   * Makes a message durable, and lets its turn begin now, soon, or as the busy mode says. What a running turn waits for
   * is `uncapped`: it must not wait for a place that only that turn can give back.
   */
  async receive(inbound: Inbound, how: Receiving = {}): Promise<Received> {
    const { mode = this.#options.busyMode(), uncapped = false, settleMs = 0 } = how;
    const free = uncapped || this.#running.size + this.#starting < this.#options.maxConcurrent;
    const begin = free && !this.#halted && settleMs === 0;
    if (begin) this.#starting++;
    const elapsed = stopwatch();
    let received: Received;
    try {
      received = await this.#options.engine.receive({ ...inbound, begin });
    } finally {
      if (begin) this.#starting--;
    }
    const { session, turn } = received;
    const channel = this.channels.open(turn.id);
    if (!received.duplicate) {
      this.#options.received(session, turn, elapsed());
      channel.publish({ type: 'accepted', sessionId: session.id, turnId: turn.id });
    }
    // The run before it may still be listed: its end is written, or this one could not have begun.
    if (received.begun) this.#start({ session, turns: [turn] }, turn, null);
    else if (turn.state === 'queued' && isParked(session)) await this.#options.parked(session, turn);
    else if (turn.state === 'queued' && !received.duplicate) {
      if (settleMs > 0 && !this.#running.has(session.id)) this.#pieces.add(session.id, turn.id, settleMs);
      else await this.#queue(session, turn, mode);
    }
    return received;
  }

  /**
   * Stops what a session is doing, or one turn of it, wherever that runs, and waits until it is written. False when it did
   * nothing.
   */
  async stop(sessionId: string, reason: ToldStop, turnId = 'any'): Promise<boolean> {
    const here = this.#running.get(sessionId);
    const run = turnId === 'any' || here?.turn.id === turnId ? here : undefined;
    run?.stop(reason);
    const elsewhere = here === undefined ? await this.#control.stopElsewhere(sessionId, reason, turnId) : null;
    if (run === undefined && elsewhere === null) return false;
    const done = elsewhere === null ? run?.done : this.channels.follow(elsewhere).ended;
    await Promise.race([done, this.#pause(STOP_GRACE_MS)]);
    return true;
  }

  /** Stops one turn, also one that waits. */
  async stopTurn({ id, sessionId, state }: Pick<Turn, 'id' | 'sessionId' | 'state'>): Promise<void> {
    if (state === 'over') return;
    if (state === 'running') await this.stop(sessionId, { type: 'told', by: 'stop' }, id);
    else {
      await this.#options.engine.dropTurn(sessionId, id, 'interrupted', 'turn_stopped');
      this.channels.look(id);
      this.wake(sessionId);
    }
  }

  /** Stops a turn (null: none; `any`: what runs), and begins nothing in its session until something else is done. */
  async withTurnStopped<T>(
    sessionId: string,
    reason: ToldStop,
    turnId: string | null,
    action: () => Promise<T>,
  ): Promise<T> {
    this.#quiet.add(sessionId);
    try {
      if (turnId !== null) await this.stop(sessionId, reason, turnId);
      return await action();
    } finally {
      this.#quiet.delete(sessionId);
      this.wake(sessionId);
    }
  }

  /** Looks at a session again: something was left to do in it. */
  wake(sessionId: string): void {
    this.#waiting.add(sessionId);
    this.#pump();
  }

  /** Carries on with what the store has: left by the last process, by one that died, or by nobody in particular. */
  async adopt(): Promise<void> {
    const turns = await this.#options.engine.store.read('unfinishedTurns', { limit: ADOPT_LIMIT });
    for (const { sessionId } of turns) if (!this.#running.has(sessionId)) this.#waiting.add(sessionId);
    this.#pump();
  }

  /** Adopts now, and again from time to time: another gateway may have died. */
  keepAdopting(): void {
    const failed = (error: unknown): void => this.#options.log.warn('looking for turns failed', { error });
    this.#stopAdopting();
    this.#stopAdopting = repeat(this.#options.timers, ADOPT_MS, () => this.adopt(), failed);
  }

  /** Begins nothing any more, gives what runs some time, then cuts it. */
  async halt(reason: ResumeReason, graceMs: number, hurry: Promise<unknown>): Promise<void> {
    this.#halted = true;
    this.#stopAdopting();
    const allDone = (): Promise<unknown> => Promise.all(this.running.map((run) => run.done));
    await Promise.race([allDone(), this.#pause(graceMs), hurry]);
    await this.#stopAll({ type: 'cut', reason });
  }

  /** Lets go of everything at once: it is not ours any longer. Those who wait for a turn are told that it goes on. */
  async abandon(): Promise<void> {
    this.pauseNew();
    await this.#stopAll({ type: 'lost' });
  }

  async #stopAll(reason: StopReason): Promise<void> {
    const runs = this.running;
    for (const run of runs) run.stop(reason);
    await Promise.race([Promise.all(runs.map(({ done }) => done)), this.#pause(STOP_GRACE_MS)]);
    this.#control.stop();
    await this.channels.close();
  }

  /** Takes a drain back. */
  resume(): void {
    this.#halted = false;
    this.keepAdopting();
  }

  /** Begins nothing any more, and leaves what runs alone. */
  pauseNew(): void {
    this.#halted = true;
    this.#stopAdopting();
  }

  async #queue(session: Session, turn: Turn, mode: BusyMode): Promise<void> {
    const run = this.#running.get(session.id);
    const elsewhere = session.owner !== null && session.owner !== this.#options.engine.instance;
    if (mode === 'queue' || (run === undefined && !elsewhere)) this.wake(session.id);
    else if (run === undefined) await this.#control.pass(turn, mode);
    else if (mode === 'interrupt') run.stop({ type: 'told', by: 'message' });
    else this.#control.steer(run, turn);
  }

  #pump(): void {
    for (const sessionId of this.#waiting) {
      if (this.#halted || this.#running.size + this.#starting >= this.#options.maxConcurrent) return;
      this.#waiting.delete(sessionId);
      if (this.#running.has(sessionId) || this.#quiet.has(sessionId) || this.#pieces.isOpen(sessionId)) continue;
      this.#starting++;
      this.#advance(sessionId)
        .catch((error: unknown) => this.#notBegun(sessionId, error))
        .finally(() => {
          this.#starting--;
          this.#pump();
        });
    }
  }

  async #advance(sessionId: string): Promise<void> {
    const { engine, admits, notice } = this.#options;
    const settled = (turnId: string): void => this.channels.look(turnId);
    const next = await beginNext(sessionId, { engine, admits, notice, pieces: this.#pieces, settled });
    if (next?.type === 'begun') this.#start(next.loaded, next.turn, next.note);
    if (next?.type === 'again') this.wake(next.sessionId);
  }

  async #notBegun(sessionId: string, error: unknown): Promise<void> {
    // Somebody else began it, or it was settled meanwhile.
    if (hasCode(error, 'fenced', 'illegal_move', 'session_ended', 'turn_not_found')) return;
    const { log } = this.#options;
    log.warn('a turn was not begun', { session: sessionId, error });
    const turnId = await this.#failedStarts.note(sessionId, error);
    if (turnId === null) return;
    log.error('a turn was given up', { session: sessionId, turn: turnId, error });
    this.channels.look(turnId);
    this.wake(sessionId);
  }

  #start(loaded: SessionWithTurns, turn: Turn, note: string | null): void {
    const run = new TurnRun(loaded, turn, note, this.channels.run(turn.id), this.#runDeps);
    this.#failedStarts.forget(loaded.session.id);
    this.#running.set(loaded.session.id, run);
    this.#options.started(run);
    void run.done.finally(() => this.#over(run));
  }

  #over(run: TurnRun): void {
    const { id } = run.session;
    if (this.#running.get(id) === run) this.#running.delete(id);
    this.#control.forget(id);
    const { result } = run;
    if (result !== null) this.channels.finish(run.channel, result);
    else {
      run.channel.publish({ type: 'interrupted' });
      this.channels.stopped(run.turn.id);
    }
    // Whatever waits in this session comes after those who waited longer.
    this.wake(id);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resume) => this.#options.timers.after(ms, resume));
  }
}
