import { type ChildProcess, spawn } from 'node:child_process';
import { z } from 'zod';
import { matchesCommand } from '../../config/command-pattern.ts';
import type { AgentConfig } from '../../config/config.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { SandboxProbe, type SandboxSettings, sandboxOf } from './sandbox.ts';
import { type AgentTool, bounded, defineTool, type ToolContext } from './tool.ts';
import { rootOf, type WorkspaceOf } from './workspace.ts';

export interface CommandSettings extends SandboxSettings, Pick<AgentConfig, 'allowCommands'> {
  readonly workspaceOf: WorkspaceOf;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const DEFAULT_SECONDS = 120;
const MAX_SECONDS = 1_800;

const schema = z.object({
  command: z.string().min(1).max(20_000).describe('A command line for sh, run in the workspace'),
  timeout_seconds: z.int().min(1).max(MAX_SECONDS).optional().describe(`${DEFAULT_SECONDS} unless given`),
});

/** Runs commands and knows which session each belongs to, so that none outlives its session. */
export class CommandRunner {
  readonly #settings: CommandSettings;
  readonly #sandbox: SandboxProbe;
  readonly #running = new Map<string, Set<RunningCommand>>();

  constructor(settings: CommandSettings) {
    this.#settings = settings;
    this.#sandbox = new SandboxProbe(settings);
  }

  get tool(): AgentTool {
    return defineTool({
      name: 'run_command',
      description: 'Runs a command in the workspace and returns its exit code and output. A person may be asked first.',
      schema,
      dangerous: ({ command }) => (matchesCommand(this.#settings.allowCommands, command) ? null : command),
      run: ({ command, timeout_seconds: seconds = DEFAULT_SECONDS }, context) => this.#run(context, command, seconds),
    });
  }

  /** Ends everything a session still runs. */
  async forget(sessionId: string): Promise<void> {
    const running = [...(this.#running.get(sessionId) ?? [])];
    await Promise.all(running.map((command) => command.end()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((sessionId) => this.forget(sessionId)));
  }

  async #run({ signal, ...asker }: ToolContext, command: string, seconds: number): Promise<string> {
    const { sessionId } = asker;
    const cwd = await rootOf(await this.#settings.workspaceOf(asker));
    await this.#sandbox.assertWorks();
    signal.throwIfAborted();
    const env = harmlessEnvironment(this.#settings.environment, cwd);
    const watched = ['-c', WATCHED, 'sh', command, ...sandboxOf(this.#settings, cwd)];
    const child = spawn('/bin/sh', watched, { cwd, env, detached: true, stdio: STDIO });
    const running = new RunningCommand(child);
    const held = this.#running.get(sessionId) ?? new Set();
    this.#running.set(sessionId, held.add(running));
    try {
      return await running.result(seconds, signal);
    } finally {
      held.delete(running);
      if (held.size === 0) this.#running.delete(sessionId);
    }
  }
}

const STDIO: ('ignore' | 'pipe')[] = ['ignore', 'pipe', 'pipe', 'pipe'];

/** The end of the fourth stream is the end of the gateway, however it died: then the whole group goes. */
const WATCHED = '(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & c=$1; shift; exec "$@" /bin/sh -c "$c" 3<&-';

/** What a command needs to work, and nothing that could open a door: names are allowed, not forbidden. */
const HARMLESS = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|COLORTERM)$/;

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

/** The environment of a command: the harmless part of the gateway's own. */
function harmlessEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => HARMLESS.test(entry[0]) && entry[1] !== undefined,
  );
  return { PATH: USUAL_PATH, HOME: home, TERM: 'dumb', ...Object.fromEntries(kept) };
}

class RunningCommand {
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;
  #output = new Output();

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (chunk: Buffer) => this.#output.add(chunk));
    child.stderr?.on('data', (chunk: Buffer) => this.#output.add(chunk));
    // The watcher's end closes with its group; that is no news.
    child.stdio[3]?.on('error', () => undefined);
    this.#ended = new Promise((resolve, reject) => {
      child.once('error', (error) => reject(MoiraiError.wrap(error, 'tool_failed')));
      child.once('exit', (code, signal) => {
        // Whatever it started in the background keeps the pipes open and goes with it.
        this.#kill();
        child.stdio[3]?.destroy();
        child.once('close', () => resolve(signal === null ? `Exit code ${code}.` : `Killed by ${signal}.`));
      });
    });
    // It may end when no caller awaits it any more.
    this.#ended.catch(() => undefined);
  }

  /** Rejects as soon as the signal aborts; the processes are killed behind it. */
  async result(seconds: number, signal: AbortSignal): Promise<string> {
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const timer = setTimeout(() => resolve(`It ran for more than ${seconds} s and was killed.`), seconds * 1_000);
    try {
      const ending = await unlessAborted(Promise.race([this.#ended, late]), signal);
      return `${ending}\n${this.#output.text}`.trim();
    } finally {
      clearTimeout(timer);
      this.#kill();
    }
  }

  async end(): Promise<void> {
    this.#kill();
    await this.#ended.catch(() => undefined);
  }

  /** The whole group: the shell, what it started, and what that started. */
  #kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // No process is left in the group, as it should be.
    }
  }
}

const KEPT_BYTES = 64 * 1024;

/** The beginning and the end of what a command wrote, however much that was. */
class Output {
  #head: Buffer[] = [];
  #tail: Buffer[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #dropped = 0;

  add(chunk: Buffer): void {
    const room = KEPT_BYTES - this.#headBytes;
    if (room > 0) this.#headBytes += this.#head[this.#head.push(chunk.subarray(0, room)) - 1]?.length ?? 0;
    const rest = chunk.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    while (this.#tailBytes - (this.#tail[0]?.length ?? 0) > KEPT_BYTES) {
      const { length = 0 } = this.#tail.shift() ?? {};
      this.#tailBytes -= length;
      this.#dropped += length;
    }
  }

  get text(): string {
    const gap = this.#dropped === 0 ? [] : [Buffer.from(`\n[... ${this.#dropped} bytes left out ...]\n`)];
    return bounded(Buffer.concat([...this.#head, ...gap, ...this.#tail]).toString('utf8'));
  }
}
