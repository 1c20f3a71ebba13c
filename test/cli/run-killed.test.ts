import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { patience } from '../support/patience.ts';
import { CliFixture, finish, hasTerminal, isRunning, launcher, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

const PATIENCE_MS = 2000;

/** What has to hold within two seconds after a wrapper was killed. */
async function expectReaped(pids: readonly number[], killed: number): Promise<void> {
  await until('nothing of the command runs', () => !pids.some(isRunning), PATIENCE_MS);
  const reaped = () => cli.json('sessions', 'list', '--kind', 'batch', '--reason', 'reaped');
  // The pipe of what was killed is closed before it is quite gone itself.
  await until('its session has ended', async () => (await reaped()).data.length > 0, PATIENCE_MS);
  const [{ data }, { open_unowned }] = await Promise.all([reaped(), cli.json('sessions', 'stats')]);
  expect(Date.now() - killed).toBeLessThan(patience(PATIENCE_MS));
  expect(data).toMatchObject([{ state: 'ended', end_reason: 'reaped', end_cause: null, owner: null }]);
  expect(open_unowned).toBe(0);
}

describe('when a wrapper is killed', () => {
  test('its command dies with it, the next command shows it reaped, and a live one beside it is untouched', async () => {
    const bystander = await cli.startRun('read _; exit 0');
    const { wrapper, pid } = await cli.startRun('exec sleep 600');
    const killed = Date.now();
    wrapper.kill('SIGKILL');
    await expectReaped([pid], killed);
    const { data } = await cli.json('sessions', 'list', '--kind', 'batch', '--state', 'open');
    expect(data).toMatchObject([{ state: 'open', owner: expect.stringMatching(/^ins_/) }]);
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 1, open_owned: 1, open_unowned: 0 });
    expect(isRunning(bystander.pid)).toBe(true);
    bystander.wrapper.stdin.end('\n');
    expect(await finish(bystander.wrapper)).toMatchObject({ code: 0 });
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, ended: { batch_complete: 1, reaped: 1 } });
    expect((await cli.json('doctor')).ok).toBe(true);
  });

  test('together with its command, the outcome is the same', async () => {
    const { wrapper, pid } = await cli.startRun('exec sleep 600');
    const killed = Date.now();
    wrapper.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await expectReaped([pid], killed);
  });

  test('after its command, the command was told before it', async () => {
    const { wrapper, pid } = await cli.startRun('exec sleep 600');
    process.kill(pid, 'SIGKILL');
    expect(await finish(wrapper)).toMatchObject({ code: 137 });
    const { data } = await cli.json('sessions', 'list', '--kind', 'batch');
    expect(data).toMatchObject([{ end_reason: 'batch_failed', end_cause: 'signal' }]);
  });

  test('nothing that the command started survives', async () => {
    const script =
      'sleep 600 & echo $!; (sleep 600 & echo $!); sh -c "trap : TERM HUP INT; echo \\$\\$; sleep 600"; true';
    const wrapper = cli.start(['run', '--', 'sh', '-c', script]);
    let output = '';
    wrapper.stdout.on('data', (bytes) => {
      output += bytes;
    });
    await until('all of them run', () => output.split('\n').length === 4);
    const pids = output.trim().split('\n').map(Number);
    expect(pids.every(isRunning)).toBe(true);
    const killed = Date.now();
    wrapper.kill('SIGKILL');
    await expectReaped(pids, killed);
  });

  test('a frozen command dies too', async () => {
    const { wrapper, pid } = await cli.startRun('exec sleep 600');
    process.kill(pid, 'SIGSTOP');
    const killed = Date.now();
    wrapper.kill('SIGKILL');
    await expectReaped([pid], killed);
  });

  test('at any moment of its start, nothing is left running and nothing is left open', async () => {
    const marker = `${600_000 + process.pid}.${Date.now() % 1000}`;
    for (let round = 0; round < 12; round++) {
      const wrapper = cli.start(['run', '--', 'sleep', marker]);
      await sleep(100 + round * 40);
      wrapper.kill('SIGKILL');
    }
    await until('no command runs', () => !processes().some((line) => line.includes(`sleep ${marker}`)));
    const { open, ended } = await cli.json('sessions', 'stats');
    expect({ open, others: Object.keys(ended).filter((reason) => reason !== 'reaped') }).toEqual({
      open: 0,
      others: [],
    });
    expect((await cli.json('doctor')).ok).toBe(true);
  });
});

describe.skipIf(!hasTerminal())('in a terminal, where the command shares our job', () => {
  test('it dies too, with all it started, and nothing else does', async () => {
    const command = `sh -c "sleep 600 & echo pid \\$!; exec sleep 600" & echo pid $! $$ end; wait`;
    const line = `'${process.execPath}' '${launcher}' run -- sh -c '${command}'`;
    const terminal = cli.terminal(`trap '' HUP; ${line}; echo shell goes on; read _`);
    let shown = '';
    terminal.stdout.on('data', (bytes) => {
      shown += bytes;
    });
    await until('all of them run', () => shown.includes('end') && shown.split('pid').length === 3);
    const pids = (shown.match(/\d+/g) ?? []).map(Number);
    expect(pids).toHaveLength(3);
    const { checks } = await cli.json('doctor');
    const { details } = checks.find((each: { check: string }) => each.check === 'instances');
    const killed = Date.now();
    process.kill(details[0].pid, 'SIGKILL');
    await expectReaped(pids, killed);
    await until('the shell is told', () => shown.includes('shell goes on'));
  });
});

describe.skipIf(oldNode() === undefined)('on an older Node, which starts the right one', () => {
  test('killing what one started kills the command too', async () => {
    const { wrapper, pid } = await cli.startRun('exec sleep 600', { node: oldNode() ?? '' });
    const killed = Date.now();
    wrapper.kill('SIGKILL');
    await expectReaped([pid], killed);
  });

  test('signals and exit codes pass through', async () => {
    const setup = "trap 'exit 6' USR1";
    const { wrapper } = await cli.startRun('while :; do sleep 0.05; done', { setup, node: oldNode() ?? '' });
    wrapper.kill('SIGUSR1');
    expect(await finish(wrapper)).toMatchObject({ code: 6, signal: null });
  });
});

describe.skipIf(process.platform !== 'linux')('under npm, which puts a shell in between', () => {
  const line = `"${process.execPath}" "${launcher}" run -- sh -c 'echo $$; exec sleep 600'`;

  test('killing npm kills the command too', async () => {
    const npm = cli.spawn('npm', ['exec', '-c', line]);
    const [bytes] = await once(npm.stdout, 'data');
    const killed = Date.now();
    npm.kill('SIGKILL');
    await expectReaped([Number(String(bytes).trim())], killed);
  });

  test('what was put into the background there goes on', async () => {
    const npm = cli.spawn('npm', ['exec', '-c', `${line} & read _`]);
    const [bytes] = await once(npm.stdout, 'data');
    npm.stdin.end('\n');
    await once(npm, 'exit');
    await sleep(1000);
    const pid = Number(String(bytes).trim());
    expect(isRunning(pid)).toBe(true);
    process.kill(pid, 'SIGTERM');
    await until('its session ended', async () => (await cli.json('sessions', 'stats')).open === 0);
    expect(await cli.json('sessions', 'stats')).toMatchObject({ ended: { batch_failed: 1 } });
  });
});

test.skipIf(process.env.MOIRAI_TEST_ALL !== '1')(
  'a wrapper that lost its lease kills its command and says so',
  async () => {
    const { wrapper, pid } = await cli.startRun('exec sleep 600');
    const outcome = finish(wrapper);
    const db = new DatabaseSync(join(cli.home, 'state.db'));
    db.exec('UPDATE instances SET lease_until = 0, pid_started = NULL');
    db.close();
    expect((await cli.json('sessions', 'list', '--kind', 'batch')).data).toMatchObject([{ end_reason: 'reaped' }]);
    const { code, errors } = await outcome; // At its next heartbeat, which comes every 15 s.
    expect({ code, running: isRunning(pid) }).toEqual({ code: 1, running: false });
    expect(errors).toContain('longer than its lease');
    expect(await cli.events('--types', 'session:end')).toHaveLength(1);
  },
);

function processes(): string[] {
  return execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).split('\n');
}

/** A Node of this machine that is too old for Moirai. */
function oldNode(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  return folders.map((folder) => join(folder, 'node')).find((node) => /^v(1[4-9]|2[0-3])\./.test(versionOf(node)));
}

function versionOf(node: string): string {
  try {
    return execFileSync(node, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return ''; // No Node in this folder.
  }
}
