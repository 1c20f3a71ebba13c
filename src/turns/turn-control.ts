import type { Engine } from '../engine/engine.ts';
import { isSameSpeaker, type Turn } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { repeat, type Timers } from '../queue/timers.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnChannels } from './turn-channels.ts';
import type { ToldStop, TurnRunDeps } from './turn-deps.ts';
import { CONTROL_QUEUE, type TurnRequest } from './turn-request-store.ts';
import type { TurnRun } from './turn-run.ts';

/** How often to look for what other processes ask of the turns that run here; a hint of the store comes sooner. */
const POLL_MS = 500;

const STOPPED_BY: ReadonlySet<string> = new Set<ToldStop['by']>(['stop', 'new', 'message']);

export interface TurnControlDeps {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  readonly channels: TurnChannels;
  readonly textWithFiles: TurnRunDeps['textWithFiles'];
  /** The turns that run here. */
  readonly running: () => readonly TurnRun[];
}

/**
 * What reaches a turn while it runs: a stop, and messages to be taken into it. A turn that another process runs is asked
 * through the store, where that process looks.
 */
export class TurnControl {
  readonly #deps: TurnControlDeps;
  /** Turns to be taken into the one that runs, by session. */
  readonly #steers = new Map<string, string[]>();
  #stop: () => void = () => undefined;

  constructor(deps: TurnControlDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { engine, timers, log } = this.#deps;
    const failed = (error: unknown): void => log.warn('looking for requests to turns failed', { error });
    const stopPolling = repeat(timers, POLL_MS, () => this.#look(), failed);
    const unlisten = engine.store.onCommit(({ queues }) => {
      if (queues.has(CONTROL_QUEUE)) this.#look().catch(failed);
    });
    this.#stop = () => {
      stopPolling();
      unlisten();
    };
  }

  stop(): void {
    this.#stop();
  }

  /** A message that waits is to be taken into the turn that runs here. A turn acts for one person: others keep their own. */
  steer({ session: { id }, turn: running }: TurnRun, turn: Turn): void {
    if (isSameSpeaker(turn, running)) this.#steers.set(id, [...(this.#steers.get(id) ?? []), turn.id]);
  }

  /** Nothing is taken into a turn that is over. */
  forget(sessionId: string): void {
    this.#steers.delete(sessionId);
  }

  /** Asks the process that runs a session's turn (`any`, or this one) to stop it; that turn, or null when it does not run. */
  async stopElsewhere(sessionId: string, { by }: ToldStop, turnId: string): Promise<string | null> {
    return this.#ask(sessionId, 'stop', by, turnId);
  }

  /** A message came for a session whose turn another process runs. */
  async pass({ id, sessionId }: Turn, mode: 'interrupt' | 'steer'): Promise<void> {
    if (mode === 'interrupt') await this.#ask(sessionId, 'stop', 'message');
    else await this.#ask(sessionId, 'steer', id);
  }

  /** A message that is taken into the running turn has no run of its own: its turn is over, answered by this one. */
  async takeSteering(run: TurnRun): Promise<readonly MessageToAppend[]> {
    const { engine, channels } = this.#deps;
    const taken = this.#steers.get(run.session.id) ?? [];
    this.#steers.delete(run.session.id);
    const rows: MessageToAppend[] = [];
    for (const turnId of taken) {
      const text = await engine.store.read('turnText', { turnId });
      if (text === null) continue;
      const whole = await this.#deps.textWithFiles(run.session, turnId, text, run.signal);
      const row = { role: 'user', text: whole, turnId: run.turn.id };
      await engine.absorb(run.session.id, turnId, [row]);
      channels.look(turnId);
      rows.push(row);
    }
    return rows;
  }

  async #ask(sessionId: string, kind: string, value: string, only = 'any'): Promise<string | null> {
    const { engine } = this.#deps;
    const turns = await engine.store.read('openTurns', { sessionId, limit: 1 });
    // The turn that runs is the oldest.
    const running = turns.find(({ state }) => state === 'running');
    if (running === undefined || (only !== 'any' && running.id !== only)) return null;
    const turnId = running.id;
    await engine.settle(({ commandId }) => engine.store.write('requestOfTurn', { id: commandId, turnId, kind, value }));
    return turnId;
  }

  async #look(): Promise<void> {
    const { engine, running } = this.#deps;
    const runs = new Map(running().map((run) => [run.turn.id, run]));
    if (runs.size === 0) return;
    const requests = await engine.store.read('turnRequests', { turnIds: [...runs.keys()] });
    if (requests.length === 0) return;
    for (const request of requests) {
      const run = runs.get(request.turnId);
      if (run !== undefined) await this.#obey(run, request);
    }
    await engine.store.write('forgetTurnRequests', { ids: requests.map(({ id }) => id) });
  }

  async #obey(run: TurnRun, { kind, value }: TurnRequest): Promise<void> {
    if (kind === 'stop' && isToldBy(value)) run.stop({ type: 'told', by: value });
    if (kind !== 'steer' || value === null) return;
    const turn = await this.#deps.engine.store.read('getTurn', { turnId: value });
    if (turn !== null) this.steer(run, turn);
  }
}

function isToldBy(value: string | null): value is ToldStop['by'] {
  return value !== null && STOPPED_BY.has(value);
}
