import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { Guardian } from './guardian.ts';

/** Waits for a line on descriptor 3 and becomes the command, with the same process id; the end of 3 ends it. */
const GATE = 'read -r _ <&3 || exit 125; exec "$@" 3<&-';

/** Signals that are passed on to the command when this process receives them. */
const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** Signals that a terminal sends to all its processes itself. */
const FROM_TERMINAL: ReadonlySet<string> = new Set(['SIGINT', 'SIGHUP', 'SIGQUIT']);

const STRIKE_MS = 3000;
const ECHO_MS = 100;

/** How a command ended. */
export type Exit = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** What the shell would show as `$?`. */
export function exitCodeOf(exit: Exit): number {
  return 'code' in exit ? exit.code : 128 + constants.signals[exit.signal];
}

/**
 * A command that dies with us, whatever we die of. It is there with its process id, behind a gate, before it runs.
 *
 * Its input, outputs and errors are ours. Without a terminal on our input it gets a process group of its own, which our
 * signals are sent to. With one it stays in our group: else the terminal would stop it when it reads, and Ctrl-C would
 * not reach it.
 */
export class BatchCommand {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #guardian: Guardian;
  readonly #inOurGroup: boolean;
  readonly #forwardedAt = new Map<string, number>();
  #over = false;

  private constructor(child: ChildProcess, pid: number, guardian: Guardian, inOurGroup: boolean) {
    this.pid = pid;
    this.#child = child;
    this.#guardian = guardian;
    this.#inOurGroup = inOurGroup;
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#over = true;
        // From here on the process id may become another process's.
        guardian.dismiss();
        resolve(signal === null ? { code: code ?? 1 } : { signal });
      });
    });
  }

  /** Makes the command ready to run. */
  static async prepare(words: readonly string[]): Promise<BatchCommand> {
    const inOurGroup = isatty(0);
    const guardian = new Guardian();
    try {
      await guardian.ready();
      const child = spawn('/bin/sh', ['-c', GATE, 'moirai-run', ...words], {
        stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
        detached: !inOurGroup,
      });
      const pid = await pidOf(child);
      const command = new BatchCommand(child, pid, guardian, inOurGroup);
      await guardian.watch(pid, !inOurGroup);
      return command;
    } catch (cause) {
      guardian.dismiss();
      throw new MoiraiError('command_not_started', `the command did not start: ${String(cause)}`, { cause });
    }
  }

  /** Opens the gate. From now on our signals are the command's. */
  run(): void {
    for (const signal of FORWARDED) process.on(signal, () => this.#forward(signal));
    this.#gate.end('go\n');
  }

  /** Ends the command before it ran. */
  abandon(): void {
    this.#gate.destroy();
  }

  /** Kills it with all it started, as far as that can be found, and waits until it is gone. */
  async kill(): Promise<void> {
    if (this.#over) return;
    this.#guardian.kill();
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STRIKE_MS); // The guardian may have been killed itself.
    await this.exited;
    clearTimeout(late);
  }

  get #gate(): Socket {
    return this.#child.stdio[3] as Socket;
  }

  #forward(signal: NodeJS.Signals): void {
    if (this.#over || this.#isSeenTo(signal)) return;
    try {
      process.kill(this.#inOurGroup ? this.pid : -this.pid, signal);
    } catch {
      // It is gone already; its exit is on its way to us.
    }
  }

  /**
   * One Ctrl-C is one signal. In our group the terminal has sent it to the command as well; and an outer process (the
   * launcher on an older Node) that got it too passes it on to us a moment later.
   */
  #isSeenTo(signal: NodeJS.Signals): boolean {
    if (!FROM_TERMINAL.has(signal)) return false;
    if (this.#inOurGroup) return true;
    const now = performance.now();
    const last = this.#forwardedAt.get(signal) ?? Number.NEGATIVE_INFINITY;
    this.#forwardedAt.set(signal, now);
    return now - last < ECHO_MS;
  }
}

function pidOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid ?? 0));
    child.once('error', reject);
  });
}
