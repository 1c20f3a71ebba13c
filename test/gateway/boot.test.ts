import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Session } from '../../src/lifecycle/session.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open({ gateway: { drain_timeout: '100ms' } });
});

afterEach(() => scene.close());

async function startWith(boot: string): Promise<void> {
  await scene.stop('restart');
  writeFileSync(join(scene.home, 'BOOT.md'), boot);
  await scene.start();
}

async function bootSessions(): Promise<Session[]> {
  const { sessions } = await scene.store.read('listSessions', {
    ...{ states: [], kinds: ['batch'], platforms: [], reasons: [], key: null, user: null, text: null, since: null },
    ...{ limit: 10, cursor: null },
  });
  return sessions;
}

async function ended(count: number): Promise<Session[]> {
  await scene.until(`${count} sessions of BOOT.md have ended`, async () => {
    return (await bootSessions()).filter(({ endedAt }) => endedAt !== null).length === count;
  });
  return bootSessions();
}

test('what BOOT.md says is done at every start, and the home channel is told', async () => {
  await scene.ask('ada', 'hello');
  expect(await scene.ask('ada', '/sethome')).toContain('home channel');
  await startWith('# At the start\n\nSweep the workshop.');
  await scene.until('the home channel is told', () => scene.pigeons.textsTo('ada').length === 2);
  expect(scene.pigeons.textsTo('ada')[1]).toMatch(/^did: \[The gateway has just started.*Sweep the workshop\.$/s);
  expect(await ended(1)).toMatchObject([{ endReason: 'batch_complete', title: 'BOOT.md' }]);
  await scene.stop('restart');
  await scene.start();
  await scene.until('it is told again', () => scene.pigeons.textsTo('ada').length === 3);
});

test('the start does not wait for it, and a stop in its middle leaves nothing open', async () => {
  await startWith('Please wait here.');
  await scene.until('it runs', () => scene.gateway.load.running === 1);
  expect(await scene.ask('ada', 'hello')).toBe('did: hello');
  rmSync(join(scene.home, 'BOOT.md'));
  await scene.stop('restart');
  await scene.start();
  expect((await ended(1))[0]?.endReason).toMatch(/^(batch_failed|reaped)$/);
});

test('without a home channel the answer stays in the transcript; with nothing to say nobody is told', async () => {
  await startWith('Sweep.');
  const [first] = await ended(1);
  expect((await scene.messages(first?.id ?? '')).at(-1)?.text).toMatch(/^did: /);
  await scene.ask('ada', 'hello');
  await scene.ask('ada', '/sethome');
  await startWith('Just shrug here');
  await ended(2);
  expect(scene.pigeons.textsTo('ada')).toEqual(['did: hello']);
});

test('what it asks for is refused at once: nobody is there', async () => {
  await scene.ask('ada', 'hello');
  await scene.ask('ada', '/sethome');
  await startWith('Please ask first.');
  await scene.until('the home channel is told', () => scene.pigeons.textsTo('ada').length === 2);
  expect(scene.pigeons.textsTo('ada')[1]).toContain('refused: nobody can be asked here');
});

test('a file with headings and comments only is no task', async () => {
  await startWith('# Nothing yet\n<!-- write what you want\ndone -->\n');
  await scene.ask('ada', 'hello');
  expect(await bootSessions()).toEqual([]);
});

test('a failure is told to the home channel', async () => {
  await scene.ask('ada', 'hello');
  await scene.ask('ada', '/sethome');
  await startWith('now fail');
  await scene.until('the failure is told', () => scene.pigeons.textsTo('ada').length === 2);
  expect(scene.pigeons.textsTo('ada')[1]).toMatch(/\([a-z_]+\)$/);
  expect(await ended(1)).toMatchObject([{ endReason: 'batch_failed' }]);
});

test('a conversation that nothing is sent to cannot be the home channel', async () => {
  const conversation = { ...scene.conversation('ada'), platform: 'web', key: 'agent:main:web:dm:ada' };
  const heard = await scene.gateway.conversations.receive({ conversation, text: '/sethome', originRef: null });
  expect(heard).toMatchObject({ type: 'answer', text: expect.stringContaining('cannot be the home channel') });
});
