import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isRunning } from '../cli/cli-fixture.ts';
import { testInFullRun } from '../support/full-run.ts';
import { manifest, noting, Scene, until } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

const keysIn = (file: string): string[] =>
  scene.lines(file).map(({ context }) => context.session_key.split(':').at(-1));

describe('a handler that', () => {
  test.each([
    ['handler.ts', noting("if (context.session_key.endsWith(':stuck')) { note('stuck', process.pid); for (;;); }")],
    ['handler.sh', SH_STUCK()],
  ])('hangs (%s) is killed at its timeout, and delays no other conversation', async (file, code) => {
    scene.hook('slow', { 'HOOK.yaml': manifest('session:start', 'timeout: 3s'), [file]: code });
    await scene.start({ maxAttempts: 1 });
    await scene.talk('stuck');
    await until('it is stuck', () => scene.lines('stuck').length === 1);
    await scene.talk('other');
    await until('the other was heard', () => keysIn('notes').includes('other'));
    expect(await scene.subscriber('hook:slow')).toMatchObject({ deadLetters: 0 });
    await until('it is dead', async () => (await scene.subscriber('hook:slow'))?.deadLetters === 1);
    const [letter] = await scene.opened.store.read('listDeadLetters', { subscriber: 'hook:slow', limit: 10 });
    expect(letter?.error).toMatch(/slow did not finish .*in 3000 ms/);
    await until('its process is gone', () => !isRunning(scene.lines('stuck')[0]));
    expect(scene.hooks?.list()).toMatchObject([{ name: 'slow', failed: 1, state: 'ready' }]);
  });

  test('takes long to load has that time beside its timeout', async () => {
    scene.hook('heavy', {
      'HOOK.yaml': manifest('session:start', 'timeout: 800ms'),
      'handler.mts': `${noting()}\nawait new Promise((loaded) => setTimeout(loaded, 1500));`,
    });
    await scene.start({ maxAttempts: 1 });
    await scene.talk(1);
    await until('it was heard', () => keysIn('notes').length === 1);
    await until('that is known', () => scene.hooks?.list()[0]?.handled === 1);
    expect(scene.hooks?.list()).toMatchObject([{ handled: 1, failed: 0 }]);
  });

  testInFullRun('hangs while it is loaded does not keep the gateway from stopping', async () => {
    scene.hook('never', {
      'HOOK.yaml': manifest('session:start'),
      'handler.mts': `${noting()}
appendFileSync(\`\${process.env.MOIRAI_HOME}/loading\`, '1\\n');
await new Promise((loaded) => setTimeout(loaded, 3_600_000));`,
    });
    const hooks = await scene.start();
    await scene.talk(1);
    await until('it is loaded', () => scene.lines('loading').length === 1);
    await hooks.stop();
    expect(await scene.subscriber('hook:never')).toMatchObject({ lag: 1, failures: 0, deadLetters: 0 });
  });

  test('crashes fails that event, and hears the next one in a new process', async () => {
    scene.hook('crasher', {
      'HOOK.yaml': manifest('session:start'),
      'handler.js': noting("if (context.session_key.endsWith(':bad')) process.exit(0);").replaceAll(
        /: (string|unknown|Record<string, unknown>|Promise<void>)/g,
        '',
      ),
    });
    await scene.start({ maxAttempts: 1 });
    await scene.talk('good');
    await until('the first was heard', () => keysIn('notes').length === 1);
    await scene.talk('bad');
    await until('it is dead', async () => (await scene.subscriber('hook:crasher'))?.deadLetters === 1);
    await scene.talk('better');
    await until('the next was heard', () => keysIn('notes').length === 2);
    expect(keysIn('notes')).toEqual(['good', 'better']);
    const [letter] = await scene.opened.store.read('listDeadLetters', { subscriber: 'hook:crasher', limit: 10 });
    expect(letter?.error).toContain('crasher exited with 0');
    const failures = await scene.opened.store.read('listEvents', {
      ...{ after: 0, limit: 100, types: ['hook:failed'], sessionId: null },
    });
    expect(failures.events.map(({ event }) => event.subscriber)).toContain('hook:crasher');
  });

  test('exits with 3 fails, and says why', async () => {
    scene.hook('three', {
      'HOOK.yaml': manifest('session:start'),
      'handler.sh': 'echo fine; echo no such thing >&2; exit 3',
    });
    await scene.start({ maxAttempts: 1 });
    await scene.talk(1);
    await until('it is dead', async () => (await scene.subscriber('hook:three'))?.deadLetters === 1);
    expect((await scene.subscriber('hook:three'))?.lastError).toBe('three exited with 3: no such thing');
  });

  test('cannot be loaded loses nothing, and catches up when it can', async () => {
    scene.hook('broken', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': 'export const handle = 5;' });
    await scene.start({ maxAttempts: 1 });
    await scene.talk(1);
    await until('it rests', () => scene.hooks?.list()[0]?.state === 'resting');
    expect(scene.hooks?.list()[0]?.lastError).toContain('it exports no function handle');
    scene.hook('broken', { 'handler.ts': noting() });
    await until('it caught up', () => scene.lines('notes').length === 1);
    expect((await scene.subscriber('hook:broken'))?.deadLetters).toBe(0);
  });

  test('fails in every conversation rests as a whole, and works again when it is mended', async () => {
    const mended = join(scene.home, 'mended');
    scene.hook('sick', {
      'HOOK.yaml': manifest('session:start'),
      'handler.sh': `[ -e "${mended}" ] || { echo x >> "$MOIRAI_HOME/tries"; exit 1; }; echo 1 >> "$MOIRAI_HOME/done"`,
    });
    await scene.start({ maxAttempts: 100 });
    for (let chat = 0; chat < 12; chat++) await scene.talk(chat);
    await until('it rests', () => scene.hooks?.list()[0]?.state === 'resting');
    expect(scene.hooks?.list()[0]?.failed).toBeLessThanOrEqual(9);
    scene.hook('../', { mended: '' });
    await until('all were heard', () => scene.lines('done').length === 12, 40_000);
    // A line is there before its handler is.
    await until('all are counted', () => scene.hooks?.list()[0]?.handled === 12);
    expect(scene.hooks?.list()[0]).toMatchObject({ state: 'ready' });
  }, 60_000);

  test('writes without end is slowed down, and the log stays short', async () => {
    scene.hook('yes', { 'HOOK.yaml': manifest('session:start', 'timeout: 2s'), 'handler.sh': 'yes some words' });
    await scene.start({ maxAttempts: 1 });
    await scene.talk(1);
    await until('it is dead', async () => (await scene.subscriber('hook:yes'))?.deadLetters === 1);
    expect(scene.logged.length).toBeLessThan(600);
  });
});

test('no process of a hook outlives a gateway that was killed, not even one that spins or left its group', async () => {
  scene.hook('spins', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': noting(SPIN) });
  scene.hook('forks', { 'HOOK.yaml': manifest('session:start'), 'handler.sh': SETSID });
  const program = fileURLToPath(new URL('./processes/host.ts', import.meta.url));
  const host = spawn(process.execPath, [program, scene.home], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(createInterface(host.stdout), 'line');
    await until('all run', () => scene.lines('pids').length === 4);
    const pids: number[] = scene.lines('pids');
    expect(pids.map(isRunning)).toEqual([true, true, true, true]);
    host.kill('SIGKILL');
    await until('all are gone', () => !pids.some(isRunning), 3000);
  } finally {
    host.kill('SIGKILL');
  }
});

describe('a hook that is changed', () => {
  test('goes on with its new code, without losing or repeating anything', async () => {
    const code = (version: number): string =>
      noting(`await new Promise((r) => setTimeout(r, 20)); note('versions', ${version});`);
    scene.hook('changing', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': code(1) });
    await scene.start();
    let chats = 0;
    for (; chats < 40 || !scene.lines('versions').includes(2); chats++) {
      await scene.talk(chats);
      if (chats === 20) await until('the first one works', () => scene.lines('versions').length > 0);
      if (chats === 20) scene.hook('changing', { 'handler.ts': code(2) });
      await new Promise((next) => setTimeout(next, 30));
    }
    await until('all were heard', () => keysIn('notes').length >= chats);
    expect(keysIn('notes').toSorted()).toEqual(Array.from({ length: chats }, (_, i) => String(i)).toSorted());
    expect(new Set(scene.lines('versions'))).toEqual(new Set([1, 2]));
    const failures = { after: 0, limit: 9, types: ['hook:failed'], sessionId: null };
    expect((await scene.opened.store.read('listEvents', failures)).events).toEqual([]);
  });

  test('hears other events when it asks for others, and none while it is disabled or away', async () => {
    scene.hook('moving', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': noting() });
    await scene.start();
    await scene.talk('a');
    await until('the start was heard', () => scene.lines('notes').length === 1);
    scene.hook('moving', { 'HOOK.yaml': manifest('agent:end') });
    await until('the store knows', async () => (await scene.subscriber('hook:moving'))?.patterns[0] === 'agent:end');
    await scene.talk('b');
    await until('the end was heard', () => scene.lines('notes').length === 2);
    scene.hook('moving', { 'HOOK.yaml': manifest('agent:end', 'enabled: false') });
    await until('it is off', () => scene.hooks?.list()[0]?.state === 'disabled');
    await scene.talk('c');
    rmSync(join(scene.home, 'hooks/moving'), { recursive: true });
    await until('it is away', () => scene.hooks?.list().length === 0);
    await until('it left', () => scene.logged.some((line) => line.includes('hook left')));
    expect(scene.lines('notes')).toHaveLength(2);
    expect(await scene.subscriber('hook:moving')).toMatchObject({ lag: 1 });
    scene.hook('moving', { 'HOOK.yaml': manifest('agent:end'), 'handler.ts': noting() });
    await until('it came back to where it was', () => keysIn('notes').length === 3, 15_000);
    expect(keysIn('notes')).toEqual(['a', 'b', 'c']);
  }, 45_000);
});

test('hooks that cannot be used are reported one by one, and the others work', async () => {
  const handler = noting();
  scene.hook('a-good', { 'HOOK.yaml': manifest('session:start'), 'handler.ts': handler });
  scene.hook('b-yaml', { 'HOOK.yaml': 'events: [session:start', 'handler.ts': handler });
  scene.hook('c-event', { 'HOOK.yaml': manifest('session:edn'), 'handler.ts': handler });
  scene.hook('d-none', { 'HOOK.yaml': manifest('"*"') });
  scene.hook('e-two', { 'HOOK.yaml': manifest('"*"'), 'handler.ts': handler, 'handler.sh': '' });
  scene.hook('f-python', { 'HOOK.yaml': manifest('"*"'), 'handler.py': '' });
  scene.hook('g-timeout', { 'HOOK.yaml': manifest('"*"', 'timeout: 10'), 'handler.ts': handler });
  scene.hook('h-twin', { 'HOOK.yaml': manifest('"*"', 'name: a-good'), 'handler.ts': handler });
  scene.hook('k-star', { 'HOOK.yaml': manifest('*'), 'handler.ts': handler });
  scene.hook('i-missing', { 'handler.ts': handler });
  scene.hook('j-list', { 'HOOK.yaml': 'events: []', 'handler.ts': handler });
  await scene.start({ environment: { PATH: '/nowhere' } });
  const problems = Object.fromEntries(scene.hooks?.list().map(({ name, problem }) => [name, problem]) ?? []);
  expect(problems).toEqual({
    'a-good': null,
    'b-yaml': expect.stringContaining('HOOK.yaml: it is no YAML'),
    'c-event': 'no event is called "session:edn"; did you mean "session:end"?',
    'd-none': expect.stringContaining('there is no handler'),
    'e-two': 'there is more than one handler: handler.sh, handler.ts',
    'f-python': 'handler.py needs python3, and there is none in PATH',
    'g-timeout': '"10" is not a duration: it is not text with a unit',
    'h-twin': 'a-good has the name "a-good" already',
    'i-missing': 'there is no HOOK.yaml',
    'k-star': expect.stringContaining('; a * needs quotes'),
    'j-list': 'HOOK.yaml: events is a list of event types, and not empty',
  });
  expect(scene.logged.filter((line) => line.includes('hook refused'))).toHaveLength(10);
  await scene.talk(1);
  await until('the good one heard', () => scene.lines('notes').length === 1);
});

const SPIN = `
  const { spawn } = await import('node:child_process');
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
  note('pids', child.pid);
  note('pids', process.pid);
  for (;;);`;

const SETSID = `setsid sh -c 'setsid sh -c "echo \\$\\$ >> \\"$MOIRAI_HOME/pids\\"; exec sleep 300" & exit'
echo $$ >> "$MOIRAI_HOME/pids"; trap '' TERM HUP INT; while :; do :; done`;

function SH_STUCK(): string {
  return `read -r event
case $event in *:stuck*) echo $$ >> "$MOIRAI_HOME/stuck"; while :; do :; done ;; esac
printf '{"context":%s}\\n' "$event" >> "$MOIRAI_HOME/notes"`;
}
