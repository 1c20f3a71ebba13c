import type { TurnContext, TurnReport, TurnTask } from '../agent/runner.ts';
import type { Finished } from '../engine/engine.ts';
import type { Hold } from '../engine/holdings.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { formatDuration } from '../lifecycle/duration.ts';
import { isParked, type Session, type SessionWithTurns, type Turn } from '../lifecycle/session.ts';
import type { ResumeReason } from '../lifecycle/states.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { type Elapsed, stopwatch } from './observer.ts';
import { failureText, INTERRUPTED_TEXTS } from './texts.ts';
import type { TurnChannel } from './turn-channel.ts';
import type { StopReason, TurnRunDeps } from './turn-deps.ts';
import { makeTask, wholeText } from './turn-task.ts';

/** A character that a person sees. */
const VISIBLE = /[^\s\p{Cc}\p{Cf}]/u;

class TurnStopped extends Error {
  readonly stop: StopReason;

  constructor(stop: StopReason) {
    super(`the turn was stopped: ${stop.type}`);
    this.stop = stop;
  }
}

/** One turn under way in this process. */
export class TurnRun {
  readonly session: Session;
  readonly turn: Turn;
  /** Everything that happens in the turn. */
  readonly channel: TurnChannel;
  /** Resolves when everything about the turn has been written, whatever came of it. */
  readonly done: Promise<void>;
  readonly #deps: TurnRunDeps;
  readonly #note: string | null;
  readonly #hold: Hold;
  readonly #abort = new AbortController();
  #cancelTimeout: () => void = () => undefined;
  #userKept = false;
  #progressAt = 0;
  /** Questions that wait for a person: meanwhile it does not stand still. */
  #questions = 0;
  readonly #elapsed = stopwatch();
  #finished: Finished | null = null;

  /** `note` is what the agent is told about a turn that was cut before. */
  constructor(loaded: SessionWithTurns, turn: Turn, note: string | null, channel: TurnChannel, deps: TurnRunDeps) {
    this.session = loaded.session;
    this.turn = turn;
    this.channel = channel;
    this.#note = note;
    this.#deps = deps;
    this.#hold = { sessionId: loaded.session.id, epoch: loaded.session.epoch };
    this.done = this.#run();
  }

  /** What came of it; null while it runs, and when it was cut or lost. */
  get outcome(): Finished['outcome'] | null {
    return this.#finished?.outcome ?? null;
  }

  /** What was written at its end; null where there is no outcome. */
  get finished(): Finished | null {
    return this.#finished;
  }

  /** The turn as the store has it, once it is over; null where it has no outcome of ours. */
  get result(): TurnResultRow | null {
    if (this.#finished === null) return null;
    const { outcome, response, model, usage, error = null } = this.#finished;
    return { ...this.turn, state: 'over', outcome, endedAt: Date.now(), response, model, usage, error };
  }

  /** How it ended here: as it was written, cut for the next process, or lost to somebody else. */
  get ending(): Finished['outcome'] | 'cut' | 'lost' {
    return this.outcome ?? (stopOf(this.signal)?.type === 'cut' ? 'cut' : 'lost');
  }

  /** How long it has been running. */
  get elapsed(): Elapsed {
    return this.#elapsed();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Asks the turn to stop; the first reason counts. */
  stop(reason: StopReason): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(new TurnStopped(reason));
  }

  async #run(): Promise<void> {
    const { runner } = this.#deps;
    this.#progressed();
    this.#watchProgress();
    try {
      const report = await runner.run(await this.#task());
      this.#abort.signal.throwIfAborted();
      // Nothing could be told to the person who waits, who would take it for silence.
      if (!VISIBLE.test(report.text)) throw new MoiraiError('model_empty', 'the model gave an empty reply');
      await this.#finishDone(report);
    } catch (thrown) {
      await this.#settle(thrown);
    } finally {
      this.#cancelTimeout();
    }
  }

  async #task(): Promise<TurnTask> {
    const transcript = [...(await this.#deps.transcript(this.session))];
    const isUserKept = transcript.some((row) => row.turnId === this.turn.id && row.role === 'user');
    this.#userKept = isUserKept;
    const source = { run: this, hold: this.#hold, note: this.#note, transcript, isUserKept, context: this.#context() };
    return makeTask(source, this.#deps);
  }

  /** As every line of the log names it. */
  get #names(): { session: string; turn: string } {
    return { session: this.session.id, turn: this.turn.id };
  }

  #context(): TurnContext {
    const { plugins, memory } = this.#deps;
    return {
      keep: async (messages) => {
        this.#progressed();
        await this.#keep(messages);
      },
      takeSteering: () => this.#deps.takeSteering(this),
      channel: this.channel,
      mayRun: (use) => plugins.mayRun(this, use),
      ran: (use, outcome) => plugins.ran(this, use, outcome),
      approve: async (request) => {
        this.#questions++;
        try {
          return await this.#deps.approve(this, request);
        } finally {
          this.#questions--;
          this.#progressed();
        }
      },
      beforeSummary: (rows) => memory.beforeSummary(this.session, rows),
    };
  }

  async #keep(messages: readonly MessageToAppend[]): Promise<void> {
    try {
      await this.#deps.engine.append(this.#hold, messages);
    } catch (thrown) {
      if (!isOver(thrown)) throw thrown;
      this.stop({ type: 'lost' });
      await this.#keepBeside(messages);
      throw thrown;
    }
    if (messages.some((row) => row.role === 'user' && row.turnId === this.turn.id)) this.#userKept = true;
  }

  /** An operator parked the session meanwhile: what was shown stays in its transcript. What was said is there already. */
  async #keepBeside(messages: readonly MessageToAppend[]): Promise<void> {
    const { engine } = this.#deps;
    const session = await engine.store.read('getSession', { sessionId: this.session.id });
    const rows = messages.filter(({ role }) => role !== 'user');
    if (session === null || !isParked(session) || rows.length === 0) return;
    await engine.appendBeside(session.id, rows);
  }

  #progressed(): void {
    this.#progressAt = this.#deps.timers.elapsed();
  }

  /** One timer at a time, and none for each piece of text: when it fires, it looks how long it has been quiet. */
  #watchProgress(): void {
    const { timers, timeoutMs } = this.#deps;
    const progressAt = Math.max(this.#progressAt, this.channel.publishedAt);
    const left = this.#questions > 0 ? timeoutMs : progressAt + timeoutMs - timers.elapsed();
    if (left <= 0) this.stop({ type: 'timeout' });
    else this.#cancelTimeout = timers.after(left, () => this.#watchProgress());
  }

  async #finishDone(report: TurnReport): Promise<void> {
    const { engine, deliveries } = this.#deps;
    const { compressed } = report;
    if (compressed !== null) await engine.compress(this.#hold, compressed);
    await this.#finish({
      outcome: 'done',
      response: report.text,
      model: report.model,
      usage: report.usage,
      messages: report.messages,
      deliveries: await deliveries(this, report.text, report),
    });
  }

  async #settle(thrown: unknown): Promise<void> {
    const stop = stopOf(this.#abort.signal) ?? (isOver(thrown) ? ({ type: 'lost' } as const) : null);
    try {
      await this.#settleAs(stop, thrown);
    } catch (failed) {
      if (!isOver(failed)) this.#deps.log.error('a turn could not be settled', { ...this.#names, error: failed });
    }
  }

  async #settleAs(stop: StopReason | null, thrown: unknown): Promise<void> {
    switch (stop?.type) {
      case 'lost':
        return;
      case 'cut':
        return this.#cut(stop.reason);
      case 'told':
        return this.#finishWithout('interrupted', INTERRUPTED_TEXTS[stop.by], null, []);
      case 'timeout': {
        const text = failureText('turn_timeout', `no progress for ${formatDuration(this.#deps.timeoutMs)}`);
        return this.#finishWithout('timeout', text, 'turn_timeout', await this.#deps.deliveries(this, text, null));
      }
      default:
        return this.#fail(MoiraiError.wrap(thrown));
    }
  }

  async #cut(reason: ResumeReason): Promise<void> {
    const { engine } = this.#deps;
    // What dies with this process cannot be carried on by the next one.
    if (this.session.attached) return this.#finishWithout('interrupted', INTERRUPTED_TEXTS.stop, null, []);
    await engine.interrupt(this.#hold, reason);
  }

  async #fail(error: MoiraiError): Promise<void> {
    const { log, deliveries } = this.#deps;
    log.warn('a turn failed', { ...this.#names, code: error.code, error });
    const text = failureText(error.code, error.message);
    return this.#finishWithout('failed', text, error.code, await deliveries(this, text, null));
  }

  /** Ends the turn without a reply of the agent. What the person wrote stays in the transcript. */
  async #finishWithout(
    outcome: 'failed' | 'interrupted' | 'timeout',
    response: string,
    error: string | null,
    deliveries: readonly DeliveryToMake[],
  ): Promise<void> {
    const messages: MessageToAppend[] = [];
    if (!this.#userKept) {
      const text = await wholeText(this.turn, this.#deps.engine.store);
      messages.push({ role: 'user', text, turnId: this.turn.id });
    }
    await this.#finish({ outcome, response, model: null, usage: null, error, messages, deliveries });
  }

  async #finish(finished: Finished): Promise<void> {
    await this.#deps.engine.finish(this.#hold, this.turn.id, finished);
    this.#finished = finished;
  }
}

function stopOf(signal: AbortSignal): StopReason | null {
  return signal.reason instanceof TurnStopped ? signal.reason.stop : null;
}

/** The turn is not ours any longer, or its session has ended. */
function isOver(thrown: unknown): boolean {
  return hasCode(thrown, 'fenced', 'session_ended', 'lease_lost', 'turn_not_found', 'illegal_move');
}
