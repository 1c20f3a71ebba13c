import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CommandRunner } from '../../src/agent/tools/run-command.ts';
import { sandboxProblem } from '../../src/agent/tools/sandbox.ts';
import { isRunning, until } from '../cli/cli-fixture.ts';
import { RUN_ALL } from '../support/share.ts';
import { temporaryFolder } from './conversation.ts';

const context = {
  ...{ sessionId: 's1', turnId: 't1', platform: 'api', userId: null },
  signal: new AbortController().signal,
};
const INSIDE = { sandbox: 'bubblewrap', sandboxNetwork: false } as const;

function runner(settings: { sandbox: 'bubblewrap'; sandboxNetwork: boolean } = INSIDE) {
  const home = temporaryFolder();
  const workspace = join(home, 'workspace');
  mkdirSync(workspace);
  writeFileSync(join(home, '.env'), 'SECRET=1');
  const environment = { PATH: process.env.PATH, HOME: home };
  const commands = new CommandRunner({
    workspaceOf: async () => workspace,
    allowCommands: [],
    environment,
    ...settings,
  });
  const run = (command: string, seconds = 60) => commands.tool.run({ command, timeout_seconds: seconds }, context);
  return { home, workspace, run };
}

/** Machines without bubblewrap leave these out; so do those whose kernel permits no sandbox, which no installation mends. */
const problem = await sandboxProblem(INSIDE);
const isMissing = problem?.includes('not installed') ?? false;
const describeInSandbox = describe.skipIf(problem !== null && !(RUN_ALL && isMissing));

describeInSandbox('a command in the sandbox', () => {
  test('writes its workspace, and nothing else that stays', async () => {
    const { workspace, home, run } = runner();
    const tried = ['mine', join(home, 'config.yaml'), '/usr/x', '/etc/x', '/x', '/tmp/x', '/var/x'];
    const text = await run(`for f in ${tried.join(' ')}; do echo made > $f && echo wrote $f; done; pwd; echo $HOME`);
    expect(text).toContain('wrote mine');
    expect(text).toContain(`${workspace}\n${workspace}`);
    expect(readFileSync(join(workspace, 'mine'), 'utf8')).toBe('made\n');
    expect(tried.slice(1).filter((path) => existsSync(path))).toEqual([]);
    expect(text).not.toMatch(/wrote \/(usr|etc|x|var)/);
  });

  test('sees no home, no other folder of the machine and no other process', async () => {
    const { home, run } = runner();
    const text = await run(
      `cat ${home}/.env ~root/.bashrc /etc/shadow; ls /root /home /var /work; ls /proc | grep -c '^[0-9]'`,
    );
    expect(text).not.toContain('SECRET');
    expect(text.match(/No such file/g)?.length).toBeGreaterThanOrEqual(6);
    expect(Number(/^(\d+)$/m.exec(text)?.[1])).toBeLessThan(10);
  });

  test('has no network, also to this machine, unless it is allowed', async () => {
    const server = createServer((_, answer) => answer.end('reached'));
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const ask = `exec 4<>/dev/tcp/127.0.0.1/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&4 && cat <&4`;
    expect(await runner().run(`bash -c "${ask}"`)).not.toContain('reached');
    expect(await runner({ ...INSIDE, sandboxNetwork: true }).run(`bash -c "${ask}"`)).toContain('reached');
    server.close();
  });

  test('dies with the gateway, also when that is killed, with all it started', async () => {
    const workspace = temporaryFolder();
    const mark = `3${process.pid}`;
    const script = fileURLToPath(new URL('./processes/run-command.ts', import.meta.url));
    const command = `setsid sleep ${mark} & touch started; wait`;
    const gateway = spawn(process.execPath, [script, workspace, command, 'bubblewrap'], { stdio: 'ignore' });
    await until('it runs', () => existsSync(join(workspace, 'started')));
    const sleepers = () => pidsOf(`sleep ${mark}`);
    await until('it sleeps', () => sleepers().length > 0);
    const pids = sleepers();
    gateway.kill('SIGKILL');
    await until('all are gone', () => !pids.some(isRunning));
  });

  test('tells its exit code, and is killed with all it started when its time is over', async () => {
    const { run } = runner();
    expect(await run('exit 3')).toContain('Exit code 3.');
    const mark = `4${process.pid}`;
    expect(await run(`setsid sleep ${mark} & wait`, 1)).toContain('was killed');
    await until('all are gone', () => pidsOf(`sleep ${mark}`).length === 0);
  });
});

/** Processes of this machine by the beginning of their command line. */
function pidsOf(line: string): number[] {
  const list = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' });
  return list.split('\n').flatMap((row) => {
    const [, pid = '', args = ''] = /^\s*(\d+)\s+(.*)$/.exec(row) ?? [];
    return args === line ? [Number(pid)] : [];
  });
}

describe('where the sandbox does not work', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('no command is run, and it is told that bubblewrap is not installed', async () => {
    vi.stubEnv('PATH', temporaryFolder());
    const { workspace, run } = runner();
    await expect(run('touch made')).rejects.toMatchObject({
      code: 'sandbox_unavailable',
      message: 'no command is run: bwrap (bubblewrap) is not installed',
    });
    expect(existsSync(join(workspace, 'made'))).toBe(false);
  });

  test('no command is run, and what the kernel did not permit is told', async () => {
    const folder = temporaryFolder();
    const refused = 'bwrap: No permissions to create new namespace';
    writeFileSync(join(folder, 'bwrap'), `#!/bin/sh\necho "${refused}" >&2\nexit 1\n`);
    chmodSync(join(folder, 'bwrap'), 0o755);
    vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
    const { workspace, run } = runner();
    await expect(run('touch made')).rejects.toMatchObject({ message: expect.stringContaining(refused) });
    expect(existsSync(join(workspace, 'made'))).toBe(false);
  });
});
