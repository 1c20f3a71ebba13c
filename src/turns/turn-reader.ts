import { toolCallsOf } from '../agent/transcript.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import type { TurnEvent } from './turn-event.ts';
import type { TurnRun } from './turn-run.ts';
import type { Turns } from './turns.ts';

const POLL_MS = 300;
const PAGE = 200;

/** A turn for those who did not send it, or lost the connection to it: wherever it runs, and after its end. */
export class TurnReader {
  readonly #turns: Turns;
  readonly #store: Store;
  readonly #timers: Timers;

  constructor(turns: Turns, store: Store, timers: Timers) {
    this.#turns = turns;
    this.#store = store;
    this.#timers = timers;
  }

  /** Throws `turn_not_found`. */
  async find(turnId: string): Promise<TurnResultRow> {
    const turn = await this.#store.read('turnResult', { turnId });
    if (turn === null) throw new MoiraiError('turn_not_found', `there is no turn ${turnId}`);
    return turn;
  }

  /** The turn as it is when it is over, or after so long. */
  async wait(turnId: string, ms: number, signal: AbortSignal): Promise<TurnResultRow> {
    const turn = await this.find(turnId);
    if (turn.state === 'over' || ms === 0) return turn;
    const { ended } = this.#turns.channels.follow(turnId);
    const gone = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const over = await Promise.race([ended, this.#pause(ms), gone]);
    return over ?? (await this.find(turnId));
  }

  /**
   * Calls back with what happens in a turn, from its beginning: what was kept of it so far, then as it happens where it
   * runs here, and step by step where it runs elsewhere. Resolves when there is nothing more to tell.
   */
  async follow(turnId: string, listener: (event: TurnEvent) => void, signal: AbortSignal): Promise<void> {
    const { ended } = this.#turns.channels.follow(turnId);
    let seen = 0;
    while (!signal.aborted) {
      const turn = await this.find(turnId);
      const rows = await this.#rowsAfter(turn.sessionId, seen);
      const run = this.#runOf(turn);
      for (const row of rows) {
        // What a run here has kept is in its channel, piece by piece.
        if (run !== undefined && row.at >= (run.turn.startedAt ?? 0)) break;
        seen = row.position;
        if (row.turnId === turnId) for (const event of eventsOf(row)) listener(event);
      }
      if (run !== undefined) {
        const stop = run.channel.watch(listener);
        await Promise.race([ended, aborted(signal)]);
        return stop();
      }
      if (turn.state === 'over') return;
      const closed = ended.then((over) => over === null);
      // Nothing more is heard of it in a process that stops.
      if (await Promise.race([closed, this.#pause(POLL_MS), aborted(signal)])) return;
    }
  }

  #runOf({ id, sessionId }: TurnResultRow): TurnRun | undefined {
    const run = this.#turns.runOf(sessionId);
    return run?.turn.id === id ? run : undefined;
  }

  async #rowsAfter(sessionId: string, after: number): Promise<Message[]> {
    const rows: Message[] = [];
    for (let full = true; full; ) {
      const page = await this.#store.read('listMessages', {
        sessionId,
        after: rows.at(-1)?.position ?? after,
        limit: PAGE,
      });
      rows.push(...page);
      full = page.length === PAGE;
    }
    return rows;
  }

  #pause(ms: number): Promise<null> {
    return new Promise((resume) => this.#timers.after(ms, () => resume(null)));
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** A row of the transcript as it was told when it was written. */
function eventsOf(row: Message): TurnEvent[] {
  if (row.role === 'tool') {
    const { toolCallId, name, ok } = row.data ?? {};
    return [{ type: 'tool', state: 'end', id: String(toolCallId), name: String(name), ok: ok === true }];
  }
  if (row.role !== 'assistant') return [];
  const calls = toolCallsOf(row).map((call): TurnEvent => ({ type: 'tool', state: 'start', ...call }));
  return row.text === '' ? calls : [{ type: 'text', text: row.text }, ...calls];
}
