import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Outlives this process to do one thing: when the pipe on its standard input ends without the word `done`, this process was
 * killed, and the guardian kills the command too. It gets the process id before the command may run, and until then the
 * command waits for this process; so there is no moment in which its death would leave the command running.
 *
 * The first line is the command's process id, and `-N` where it has a process group N of its own. It and its descendants
 * are stopped one by one, so that none can start another meanwhile, and then killed; so is the group, for those whose
 * parents have left. (Signals are named with -s: dash takes `kill -KILL -- -N` for a mistake.)
 */
const SCRIPT = `
trap '' TERM INT HUP QUIT USR1 USR2 TSTP TTIN TTOU PIPE
children() { cat /proc/"$1"/task/*/children 2>/dev/null || pgrep -P "$1"; }
descend() {
  kill -s STOP "$1" && victims="$victims $1"
  for child in $(children "$1"); do descend "$child"; done
}
read -r pid group || exit 0
read -r word
[ "$word" = done ] && exit 0
victims=
descend "$pid"
[ -z "$victims$group" ] || kill -s KILL -- $victims $group
`;

export class Guardian {
  readonly #process: ChildProcess;

  constructor() {
    this.#process = spawn('/bin/sh', ['-c', SCRIPT, 'moirai-guardian'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
      detached: true, // in a session of its own: what kills our group or our terminal does not reach it
    });
    this.#process.stdin?.on('error', () => undefined); // The guardian is gone: there is nothing to write to.
  }

  /** Resolves when it runs. */
  ready(): Promise<void> {
    return new Promise((ready, failed) => {
      this.#process.once('spawn', () => {
        // It waits for us, not we for it.
        this.#process.unref();
        (this.#process.stdin as unknown as { unref(): void }).unref();
        ready();
      });
      this.#process.once('error', failed);
    });
  }

  /** From now on the process dies with us, and all of its group if it leads one. */
  watch(pid: number, leadsGroup: boolean): Promise<void> {
    const line = leadsGroup ? `${pid} -${pid}\n` : `${pid}\n`;
    return new Promise((told) => this.#process.stdin?.write(line, () => told()));
  }

  /** There is nothing left to be killed. */
  dismiss(): void {
    this.#process.stdin?.end('done\n');
  }

  /** Kills now, as if we had died. */
  kill(): void {
    this.#process.stdin?.end();
  }
}
