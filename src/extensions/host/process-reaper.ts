import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Outlives us to do one thing: when the pipe on its standard input ends, whoever held the other end is gone, and every
 * process on its list is killed with all its descendants and its group, also one that spins and would notice nothing.
 * A line is `+ PID` (put it on the list), `- PID` (it is gone) or `! PID` (kill it now). Descendants are stopped one by
 * one before any is killed, so that none can start another meanwhile. (Signals are named with -s: dash takes
 * `kill -KILL -- -N` for a mistake.)
 */
const SCRIPT = `
trap '' TERM INT HUP QUIT USR1 USR2 TSTP TTIN TTOU PIPE
children() { cat /proc/"$1"/task/*/children 2>/dev/null || pgrep -P "$1"; }
descend() {
  kill -s STOP "$1" && victims="$victims $1"
  for child in $(children "$1"); do descend "$child"; done
}
kill_tree() { victims=; descend "$1"; kill -s KILL -- $victims "-$1"; }
without() { left=; for each in $list; do [ "$each" = "$1" ] || left="$left $each"; done; list=$left; }
list=
while read -r word pid; do
  case $word in
    +) list="$list $pid" ;;
    -) without "$pid" ;;
    !) kill_tree "$pid" ;;
  esac
done
for pid in $list; do kill_tree "$pid"; done
`;

const RESTART_MS = 200;

/** Sees to it that no process of a hook outlives this one, however this one ends. */
export class ProcessReaper {
  readonly #watched = new Set<number>();
  #process: ChildProcess | null = null;
  #closed = false;

  /** From the moment this resolves the process, which leads a group of its own, dies with us. */
  async watch(pid: number): Promise<void> {
    this.#watched.add(pid);
    // A reaper that has to be started is told of all that are watched.
    if (this.#process === null) await this.#start();
    else await this.#tell(`+ ${pid}\n`);
  }

  /** It is gone: from here on its id may become somebody else's. */
  forget(pid: number): void {
    if (this.#watched.delete(pid)) void this.#tell(`- ${pid}\n`);
  }

  /** Kills it with its descendants, also those that left its group. */
  kill(pid: number): void {
    void this.#tell(`! ${pid}\n`);
  }

  /** Kills what is left, and goes. */
  close(): void {
    this.#closed = true;
    this.#process?.stdin?.end();
  }

  async #start(): Promise<void> {
    const child = spawn('/bin/sh', ['-c', SCRIPT, 'moirai-reaper'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
      detached: true, // in a session of its own: what kills our group or our terminal does not reach it
    });
    this.#process = child;
    child.stdin?.on('error', () => undefined); // It is gone; its exit tells.
    child.once('exit', () => this.#left(child));
    child.once('error', () => this.#left(child));
    child.unref();
    (child.stdin as unknown as { unref(): void }).unref();
    await this.#tell([...this.#watched].map((pid) => `+ ${pid}\n`).join(''));
  }

  /** Somebody killed the reaper: another one takes its place, as long as there is somebody to watch. */
  #left(child: ChildProcess): void {
    if (this.#process !== child) return;
    this.#process = null;
    if (this.#closed || this.#watched.size === 0) return;
    setTimeout(() => {
      if (this.#process === null && !this.#closed) void this.#start();
    }, RESTART_MS).unref();
  }

  #tell(words: string): Promise<void> {
    const stdin = this.#process?.stdin;
    if (!stdin?.writable) return Promise.resolve();
    return new Promise((told) => stdin.write(words, () => told()));
  }
}
