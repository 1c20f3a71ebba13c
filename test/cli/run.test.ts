import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, finish, hasTerminal, launcher, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

/** The only session there is. */
async function theSession() {
  const { data } = await cli.json('sessions', 'list', '--kind', 'batch');
  expect(data).toHaveLength(1);
  return data[0];
}

describe('a command', () => {
  test('that succeeds completes its session', async () => {
    const { code, output, errors } = await cli.moirai('run', '--', 'echo', 'a  b', '--json');
    expect({ code, output, errors }).toEqual({ code: 0, output: 'a  b --json\n', errors: '' });
    expect(await theSession()).toMatchObject({
      ...{ kind: 'batch', platform: 'batch', title: "echo 'a  b' --json", state: 'ended' },
      ...{ end_reason: 'batch_complete', end_cause: null, owner: null, user_id: null },
      key: expect.stringMatching(/^agent:main:batch:dm:[\w-]+$/),
    });
    expect(await cli.events()).toMatchObject([
      {
        type: 'session:start',
        origin: { command: ['echo', 'a  b', '--json'], cwd: process.cwd(), pid: expect.any(Number) },
      },
      { type: 'session:end', reason: 'batch_complete', cause: null, trigger: 'process' },
    ]);
  });

  test.each([1, 3, 127, 255])('that exits with %i fails its session, and the code is passed on', async (status) => {
    expect(await cli.moirai('run', '--', 'sh', '-c', `exit ${status}`)).toMatchObject({ code: status });
    expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'exit' });
  });

  test.each(['SIGTERM', 'SIGKILL', 'SIGSEGV'] as const)('that dies of %s gives 128 and its number', async (signal) => {
    const outcome = await cli.moirai('run', '--', 'sh', '-c', `kill -s ${signal.slice(3)} $$`);
    expect(outcome).toMatchObject({ code: 128 + constants.signals[signal], signal: null });
    expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'signal' });
  });

  test('that is not there gives 127, that cannot be executed 126', async () => {
    const file = join(cli.home, 'plain');
    writeFileSync(file, 'text');
    const script = join(cli.home, 'script');
    writeFileSync(script, '#!/no/such/interpreter\n');
    chmodSync(script, 0o755);
    const cases = [
      ['no-such-command-anywhere', 127],
      ['/no/such/file', 127],
      [script, 127],
      [file, 126],
      [cli.home, 126],
    ] as const;
    for (const [command, code] of cases) {
      const outcome = await cli.moirai('run', '--', command, 'argument');
      expect(outcome).toMatchObject({ code, output: '', errors: expect.stringContaining('[command_not_started]') });
    }
    const { data } = await cli.json('sessions', 'list', '--kind', 'batch');
    expect(
      data.map((session: { end_reason: string; end_cause: string }) => [session.end_reason, session.end_cause]),
    ).toEqual(cases.map(() => ['batch_failed', 'not_started']));
  });

  test('has a session before it runs, and keeps it open with a live owner', async () => {
    const { wrapper } = await cli.startRun('read _; exit 0');
    const open = await theSession();
    expect(open).toMatchObject({ state: 'open', owner: expect.stringMatching(/^ins_/), ended_at: null });
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 1, open_owned: 1, open_unowned: 0 });
    wrapper.stdin.end('go on\n');
    expect(await finish(wrapper)).toMatchObject({ code: 0 });
    expect(await theSession()).toMatchObject({ id: open.id, state: 'ended', owner: null });
    const { checks } = await cli.json('doctor');
    expect(checks.find((each: { check: string }) => each.check === 'instances').details).toEqual([]);
  });

  test('may be given without --, and with a title', async () => {
    expect(await cli.moirai('run', '--title', 'nightly', 'sh', '-c', 'echo "$@"', 'sh', '--title', 'x')).toMatchObject({
      code: 0,
      output: '--title x\n',
    });
    expect(await theSession()).toMatchObject({ title: 'nightly' });
  });

  test('with a long or hostile line has a short and printable title', async () => {
    await cli.moirai('run', '--', 'true', '\u001b[31m\u202e\n', 'x'.repeat(10_000));
    const { title } = await theSession();
    expect([...title]).toHaveLength(100);
    expect(title).toMatch(/^true '\\x1b\[31m\\u\{202e\}\\n' x+…$/);
  });

  test('does not run when its session cannot be started', async () => {
    writeFileSync(join(cli.home, 'state.db'), 'no database');
    const trace = join(cli.home, 'trace');
    expect(await cli.moirai('run', '--', 'touch', trace)).toMatchObject({ code: 1 });
    expect(existsSync(trace)).toBe(false);
  });
});

describe('between a command and the world', () => {
  test('input, output and errors pass through pipes, large ones and slow ones too', async () => {
    const input = 'line of input\n'.repeat(200_000);
    const child = cli.start(['run', '--', 'sh', '-c', 'echo begun >&2; cat']);
    child.stdin.end(input);
    await once(child.stderr, 'data');
    await new Promise((done) => setTimeout(done, 300)); // Nobody reads: the command must wait, not fail.
    const { code, output } = await finish(child);
    expect(code).toBe(0);
    expect(output).toBe(input);
  });

  test('a reader that leaves is the command’s affair', async () => {
    const shell = cli.spawn('sh', ['-c', `"${process.execPath}" "${launcher}" run -- yes | head -n 1`]);
    expect(await finish(shell)).toMatchObject({ code: 0, output: 'y\n', errors: '' });
    await until('the session ended', async () => (await theSession()).state === 'ended');
    expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'signal' });
  });

  test('nothing else is inherited', async () => {
    const shell = ['sh', '-c', 'env; echo; exec ls /proc/self/fd 2>/dev/null'] as const;
    const { output } = await cli.moirai('run', '--', ...shell);
    expect(output).not.toMatch(/NODE_COMPILE_CACHE|MOIRAI_LIFELINE/);
    // What this process hands on to every child, the machine has given it; nothing else may be there.
    const plain = await finish(cli.spawn('sh', shell.slice(1)));
    expect(output.split('\n\n').at(-1)).toBe(plain.output.split('\n\n').at(-1));
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const)(
    '%s is passed on',
    async (signal) => {
      const name = signal.slice(3);
      const setup = `trap 'echo got ${name}; exit 9' ${name}`;
      const { wrapper } = await cli.startRun('while :; do sleep 0.05; done', { setup });
      const outcome = finish(wrapper);
      wrapper.kill(signal);
      expect(await outcome).toMatchObject({ code: 9, output: expect.stringContaining(`got ${name}\n`) });
      expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'exit' });
    },
  );

  test('a signal reaches the whole pipeline of the command', async () => {
    const { wrapper } = await cli.startRun('sleep 600 | sleep 600');
    wrapper.kill('SIGTERM');
    expect(await finish(wrapper)).toMatchObject({ code: 128 + 15 });
    expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'signal' });
  });
});

describe.skipIf(!hasTerminal())('in a terminal', () => {
  test('one Ctrl-C is one signal to the command, and its terminal is the real one', async () => {
    const command = `trap "echo got INT" INT; trap "exit 5" TERM; test -t 0 && echo terminal; while :; do sleep 0.05; done`;
    const line = ['run', '--', 'sh', '-c', command].map((word) => `'${word}'`).join(' ');
    // exec: a shell in between would get the Ctrl-C as well, and some shells die of it.
    const terminal = cli.terminal(`exec '${process.execPath}' '${launcher}' ${line}`);
    let shown = '';
    terminal.stdout.on('data', (bytes) => {
      shown += bytes;
    });
    await until('the command runs', () => shown.includes('terminal'));
    terminal.stdin.write('\u0003');
    await until('the signal arrives', () => shown.includes('got INT'));
    const { origin } = (await cli.events('--types', 'session:start'))[0];
    process.kill(origin.pid, 'SIGTERM');
    const [code] = await once(terminal, 'exit');
    expect({ code, signals: shown.split('got INT').length - 1 }).toEqual({ code: 5, signals: 1 });
    expect(await theSession()).toMatchObject({ end_reason: 'batch_failed', end_cause: 'exit' });
  });
});

test('ten at the same time on one store all end properly', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, n) => cli.moirai('run', '--', 'sh', '-c', `sleep 0.${n}; exit ${n}`)),
  );
  expect(outcomes.map(({ code, errors }) => [code, errors])).toEqual(outcomes.map((_, n) => [n, '']));
  expect(await cli.json('sessions', 'stats')).toEqual({
    ...{ total: 10, open: 0, open_owned: 0, open_unowned: 0 },
    ended: { batch_complete: 1, batch_failed: 9 },
  });
  const { ok, checks } = await cli.json('doctor');
  expect(ok).toBe(true);
  expect(checks.find((each: { check: string }) => each.check === 'instances').details).toEqual([]);
});

test('a session that an operator ended is not ended again', async () => {
  const { wrapper } = await cli.startRun('read _; exit 4');
  const { id } = await theSession();
  await cli.moirai('sessions', 'end', id);
  wrapper.stdin.end('\n');
  expect(await finish(wrapper)).toMatchObject({
    code: 4,
    errors: expect.stringContaining('ended before: admin_close'),
  });
  expect(await cli.events('--types', 'session:end')).toMatchObject([{ reason: 'admin_close' }]);
});
