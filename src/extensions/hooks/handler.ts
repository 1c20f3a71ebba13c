import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Timers } from '../../queue/timers.ts';
import type { ExtensionHost, LineSink } from '../host/extension-host.ts';
import type { ProcessSpec } from '../host/protocol.ts';

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
  readonly host: ExtensionHost;
  readonly timers: Timers;
  /** Hears what it prints, beside the log. */
  readonly sink?: LineSink;
}

/** What a runner is told to load. */
export interface HandlerTask {
  readonly file: string;
  readonly name: string;
}

export interface HookCall {
  readonly type: string;
  readonly context: MoiraiEvent;
}

const MEMORY_MB = 768;
/** People wait for the gateway, and nobody for a hook. */
const NICENESS = 10;

/** How a process of a hook is started. */
export function hookProcess(deps: HandlerDeps, command: readonly string[]): ProcessSpec {
  const { name, folder, environment } = deps;
  return {
    extension: `hook:${name}`,
    command,
    folder,
    environment,
    stdin: null,
    niceness: NICENESS,
    memoryMb: MEMORY_MB,
  };
}
