import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isRunning } from '../cli/cli-fixture.ts';
import { manifest, noting } from '../hooks/scene.ts';
import { Scene, until } from '../plugins/scene.ts';
import { someOf } from '../support/full-run.ts';
import { hasPython } from '../support/python.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** A hook beside the runaway: it has to go on in the same process all the time. */
function installWitness(): void {
  scene.base.hook('witness', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': noting() });
}

async function failuresOf(): Promise<Record<string, string>> {
  const query = { after: 0, limit: 100, types: ['hook:failed'], sessionId: null };
  const { events } = await scene.base.opened.store.read('listEvents', query);
  return Object.fromEntries(events.map(({ event }) => [String(event.subscriber), String(event.error)]));
}

const FLOOD = `const { writeSync } = await import('node:fs');
  const block = Buffer.alloc(1_000_000, 120);
  for (let i = 0; i < 700; i++) for (let at = 0; at < block.length; ) {
    try { at += writeSync(3, block, at); } catch (error) { if ((error as { code: string }).code !== 'EAGAIN') throw error; }
  }`;
const ZEROS = 'head -c 700000000 /dev/zero';
const HOARD = 'const all: Buffer[] = []; for (;;) all.push(Buffer.alloc(50_000_000, 1));';
const HOARD_PY = 'def handle(event_type, context):\n    held = []\n    while True: held.append(b"x" * 50_000_000)\n';

/** One that takes its channel, one that takes the processor. */
const SHORT = ['writes 700 MB to its channel without an end of line', 'spins'];

describe('a hook that', () => {
  type Runaway = [what: string, file: string, code: string, why: RegExp, seconds: number];
  const runaways: Runaway[] = [
    ['writes 700 MB to its channel without an end of line', 'handler.ts', noting(FLOOD), /without an end of line/, 20],
    ['writes 700 MB to its output without an end of line', 'handler.sh', ZEROS, /did not finish .*in 3000 ms/, 3],
    ['spins', 'handler.ts', noting('for (;;);'), /did not finish .*in 3000 ms/, 3],
    ['takes memory outside of its heap', 'handler.ts', noting(HOARD), /more than 768 MB/, 20],
    ['takes memory in Python', 'handler.py', HOARD_PY, /more than 768 MB/, 20],
  ];
  test.each(
    someOf(runaways, ([what]) => SHORT.includes(what)).filter(([, file]) => file !== 'handler.py' || hasPython()),
  )(
    '%s is stopped and blamed alone',
    async (_, file, code, why, seconds) => {
      installWitness();
      scene.base.hook('runaway', { 'HOOK.yaml': manifest('session:start', `timeout: ${seconds}s`), [file]: code });
      await scene.base.start({ maxAttempts: 1 });
      await scene.base.talk(1);
      await until('it failed', async () => (await scene.base.subscriber('hook:runaway'))?.deadLetters === 1, 30_000);
      await scene.base.talk(2);
      await until('the witness heard both', () => scene.lines('notes').length === 2);
      expect(new Set(scene.lines('notes').map(({ pid }) => pid)).size).toBe(1);
      const failures = await failuresOf();
      expect(Object.keys(failures)).toEqual(['hook:runaway']);
      expect(failures['hook:runaway']).toMatch(why);
      expect(scene.logged).not.toContain('the host process of hooks and plugins ended');
    },
    60_000,
  );
});

test('a plugin that takes memory outside of its heap is ended alone, by name', async () => {
  installWitness();
  scene.plugin('hoards', `ctx.on('session:start', () => { ${HOARD} });`, 'memory: 64');
  const plugins = await scene.start({ maxAttempts: 1 });
  await scene.base.start();
  await scene.base.talk(1);
  await until('it failed', async () => (await scene.base.subscriber('plugin:hoards'))?.deadLetters === 1, 20_000);
  await until('the witness heard it', () => scene.lines('notes').length === 1);
  expect(plugins.list()[0]?.lastError).toMatch(/more than 320 MB/);
  expect(Object.keys(await failuresOf())).toEqual(['plugin:hoards']);
});

describe('what an extension starts', () => {
  const LEAVE = 'setsid sh -c \'echo $$ >> "$MOIRAI_HOME/pids"; exec sleep 300\' > /dev/null 2>&1 &';

  test('and leaves behind in another session is killed when its handler is done', async () => {
    scene.base.hook('leaves', {
      'HOOK.yaml': manifest('session:start'),
      'handler.sh': `${LEAVE}\nwhile [ ! -s "$MOIRAI_HOME/pids" ]; do sleep 0.05; done`,
    });
    await scene.base.start();
    await scene.base.talk(1);
    await until('it is done', () => scene.base.hooks?.list()[0]?.handled === 1);
    const [pid] = scene.lines('pids');
    await until('what it left is gone', () => !isRunning(pid), 3000);
  });

  test('in another session is killed with a plugin that is unloaded', async () => {
    scene.plugin(
      'leaves',
      `const { spawn } = await import('node:child_process');
      spawn('sh', ['-c', ${JSON.stringify(LEAVE)}], { stdio: 'ignore', detached: true });`,
    );
    const plugins = await scene.start();
    await until('it runs', () => scene.lines('pids').length === 1);
    const [pid] = scene.lines('pids');
    expect(isRunning(pid)).toBe(true);
    await plugins.stop();
    await until('it is gone', () => !isRunning(pid), 3000);
  });
});

describe('when the host process is killed', () => {
  const hostPid = (pid: number): number => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  };

  const heard = (sessionId: string): boolean =>
    scene.lines('notes').some(({ context }) => context.session_id === sessionId);

  test.each([
    ['has done its work', 'notes', ''],
    [
      'is at work',
      'began',
      "note('began', { pid: process.pid }); await new Promise((done) => setTimeout(done, 3000));",
    ],
  ])('a hook that %s and plugins go on in another one, and nothing is counted against them', async (_, file, code) => {
    scene.base.hook('witness', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': noting(code) });
    scene.plugin('echo', "ctx.gate('pre_gateway_dispatch', () => ({ action: 'rewrite', text: String(process.pid) }));");
    const plugins = await scene.start();
    await scene.base.start({ maxAttempts: 1 });
    const first = await scene.base.talk(1);
    await until('the witness has it', () => scene.lines(file).length === 1);
    const { pid } = scene.lines(file)[0];
    const host = hostPid(pid);
    // In the middle of a reload, which calls the old processes away: nobody waits for that.
    const rejections: unknown[] = [];
    const note = (reason: unknown): void => void rejections.push(reason);
    process.on('unhandledRejection', note);
    scene.base.hook('witness', { 'handler.ts': noting("note('again', 1);") });
    await until('it is reloaded', () => scene.logged.includes('hook reloaded'));
    process.kill(host, 'SIGKILL');
    await until('the plugin is back', () => plugins.list()[0]?.state === 'ready' && plugins.list()[0]?.restarts === 1);
    const second = await scene.base.talk(2);
    await until('the witness heard both', () => heard(first) && heard(second));
    expect((await scene.base.subscriber('hook:witness'))?.deadLetters).toBe(0);
    await until('what it had started is gone', () => !isRunning(pid), 3000);
    process.off('unhandledRejection', note);
    expect(rejections).toEqual([]);
  });
});
