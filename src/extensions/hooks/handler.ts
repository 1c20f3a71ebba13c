import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Timers } from '../../queue/timers.ts';
import type { LineSink } from '../host/output-lines.ts';
import type { ProcessReaper } from '../host/process-reaper.ts';

/** What runs the handler of one hook. */
export interface Handler {
  /**
   * Resolves when the handler took the event. Throws `subscriber_timeout`, `subscriber_failed`, or
   * `subscriber_unavailable` when the event was not handed over. Aborting the signal kills what works on it.
   */
  run(event: MoiraiEvent, signal: AbortSignal): Promise<void>;
  /** Processes that are there now. */
  readonly processes: number;
  /** Takes nothing new; resolves when what is under way is finished and the processes are gone. */
  retire(): Promise<void>;
  /** Kills everything. */
  close(): Promise<void>;
}

/** What a handler's processes are started with. */
export interface HandlerDeps {
  readonly name: string;
  readonly folder: string;
  readonly timeoutMs: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly reaper: ProcessReaper;
  readonly timers: Timers;
  readonly sink: LineSink;
}
