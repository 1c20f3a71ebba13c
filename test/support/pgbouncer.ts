import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { giveTo, temporaryFolder, unprivilegedUser } from './postgres-binaries.ts';

/** Why no pooler can be started here; undefined when one can. */
export function whyNoPgbouncer(): string | undefined {
  const { error } = spawnSync('pgbouncer', ['--version'], { env: ENVIRONMENT });
  return error === undefined ? undefined : 'pgbouncer is not installed';
}

const ENVIRONMENT = { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
const START_DEADLINE_MS = 20_000;

export interface Pgbouncer {
  /** The database by way of the pooler. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A real pgbouncer on loopback before one database. As root it runs as an unprivileged user: it refuses to be root. */
export async function startPgbouncer(databaseUrl: string, settings: Record<string, string>): Promise<Pgbouncer> {
  const owner = process.getuid?.() === 0 ? unprivilegedUser() : undefined;
  const home = await mkdtemp(join(await temporaryFolder(owner), 'moirai-pgbouncer-'));
  const { username, password, hostname, port: serverPort, pathname } = new URL(databaseUrl);
  const port = await freePort();
  const name = pathname.slice(1);
  const lines = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'plain',
    auth_file: join(home, 'users'),
    default_pool_size: '40',
    ...settings,
  };
  const server = `${name} = host=${hostname} port=${serverPort} dbname=${name} user=${username} password=${password}`;
  const body = Object.entries(lines).map(([key, value]) => `${key} = ${value}`);
  await writeFile(join(home, 'pgbouncer.ini'), ['[databases]', server, '[pgbouncer]', ...body, ''].join('\n'));
  await writeFile(join(home, 'users'), `"${username}" "${password}"\n`);
  await chmod(home, 0o700);
  if (owner) await giveTo(owner, home);
  const child = spawn('pgbouncer', [join(home, 'pgbouncer.ini')], {
    ...owner,
    cwd: home,
    env: ENVIRONMENT,
    stdio: 'pipe',
  });
  let log = '';
  child.stderr.on('data', (text: Buffer) => {
    log += text;
  });
  const stop = async (): Promise<void> => {
    await end(child);
    await rm(home, { recursive: true, force: true });
  };
  for (const deadline = Date.now() + START_DEADLINE_MS; !(await isOpen(port)); await sleep(20)) {
    if (child.exitCode === null && Date.now() < deadline) continue;
    await stop();
    throw new Error(`pgbouncer did not start:\n${log}`);
  }
  const url = new URL(databaseUrl);
  url.port = String(port);
  return { url: url.href, stop };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
