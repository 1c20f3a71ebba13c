import { type ChildProcess, spawn } from 'node:child_process';
import { MARKER } from './protocol.ts';

/**
 * Outlives the host process to do one thing: when the pipe on its standard input ends, the host process is gone,
 * and every process on its list is killed with its descendants and its group; then whatever carries the marker of the host
 * process, until two looks in a row find nothing. A line is `+ PID` (put it on the list) or `- PID` (it is gone).
 * Descendants are stopped one by one before any is killed, so that none can start another meanwhile. (Signals are named
 * with -s: dash takes `kill -KILL -- -N` for a mistake.)
 */
const SCRIPT = `
trap '' TERM INT HUP QUIT USR1 USR2 TSTP TTIN TTOU PIPE
children() { cat /proc/"$1"/task/*/children 2>/dev/null || pgrep -P "$1"; }
descend() {
  kill -s STOP "$1" && victims="$victims $1"
  for child in $(children "$1"); do descend "$child"; done
}
marked() { grep -asl "$1" /proc/[0-9]*/environ | cut -d/ -f3; }
list=
while read -r word pid; do
  case $word in
    +) list="$list $pid" ;;
    -) left=; for each in $list; do [ "$each" = "$pid" ] || left="$left $each"; done; list=$left ;;
  esac
done
for pid in $list; do victims=; descend "$pid"; kill -s KILL -- $victims "-$pid"; done
quiet=0
while [ "$quiet" -lt 2 ]; do
  victims=$(marked "$1")
  if [ -n "$victims" ]; then kill -s KILL -- $victims; quiet=0; else quiet=$((quiet + 1)); fi
  sleep 0.2
done
`;

const RESTART_MS = 200;

/** Sees to it that no process of an extension outlives this one, however this one ends. */
export class ProcessReaper {
  readonly #token: string;
  readonly #watched = new Set<number>();
  #process: ChildProcess | null = null;

  /** `token` begins the marker of every process that is to be killed. */
  constructor(token: string) {
    this.#token = token;
    this.#start();
  }

  /** Needed for what loses its marker, and where there is no /proc. */
  watch(pid: number): void {
    this.#watched.add(pid);
    this.#process?.stdin?.write(`+ ${pid}\n`);
  }

  /** It is gone: from here on its id may become that of another process. */
  forget(pid: number): void {
    if (this.#watched.delete(pid)) this.#process?.stdin?.write(`- ${pid}\n`);
  }

  #start(): void {
    const child = spawn('/bin/sh', ['-c', SCRIPT, 'moirai-reaper', `${MARKER}=${this.#token}`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
      detached: true, // in a session of its own: what kills our group or our terminal does not reach it
    });
    this.#process = child;
    child.stdin?.on('error', () => undefined); // It is gone; its exit tells.
    child.once('exit', () => this.#replace(child));
    child.once('error', () => this.#replace(child));
    child.unref();
    (child.stdin as unknown as { unref(): void }).unref();
    child.stdin?.write([...this.#watched].map((pid) => `+ ${pid}\n`).join(''));
  }

  /** Something killed the reaper: another one takes its place. */
  #replace(child: ChildProcess): void {
    if (this.#process !== child) return;
    this.#process = null;
    setTimeout(() => this.#start(), RESTART_MS).unref();
  }
}
