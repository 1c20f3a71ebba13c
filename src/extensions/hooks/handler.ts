import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { nodeCommand } from '../host/environment.ts';
import type { ExtensionHost, LineSink } from '../host/extension-host.ts';
import type { ProcessSpec } from '../host/protocol.ts';
import type { HandlerFile, UsableHook } from './hook-kind.ts';
import { PYTHON_RUNNER } from './python-runner.ts';

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

/** What the processes of hooks are started with. */
export interface HookDeps {
  readonly host: ExtensionHost;
  readonly environment: Readonly<Record<string, string>>;
  /** For hooks that do not say it themselves. */
  readonly timeoutMs: number;
  /** Hears what they print, beside the log. */
  readonly sink?: LineSink;
}

/** The argument of `load`: what a runner loads. */
export interface HandlerTask {
  readonly file: string;
  readonly name: string;
}

const MEMORY_MB = 768;
const NODE_HEAP_MB = 512;
/** People wait for the gateway, and not for a hook. */
const NICENESS = 10;

/** How long a hook may work on one event. */
export function timeoutOf({ manifest }: UsableHook, { timeoutMs }: HookDeps): number {
  return manifest.timeoutMs ?? timeoutMs;
}

/** How a process of a hook is started. */
export function hookProcess({ name, folder, handler }: UsableHook, { environment }: HookDeps): ProcessSpec {
  return {
    kind: 'hook',
    name,
    command: commandOf(handler),
    folder,
    environment,
    stdin: null,
    niceness: NICENESS,
    memoryMb: MEMORY_MB,
  };
}

function commandOf({ kind, command }: HandlerFile): readonly string[] {
  if (kind === 'executable') return command;
  // -B: a cache of compiled code has no place in the hook's folder; -u: what it prints is seen at once.
  if (kind === 'python') return [...command, '-B', '-u', '-c', PYTHON_RUNNER];
  return nodeCommand('node-worker', import.meta.url, NODE_HEAP_MB);
}
