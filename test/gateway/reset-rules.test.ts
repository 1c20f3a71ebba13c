import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { Scene } from './scene.ts';

const DAY = 86_400_000;
const IDLE = { mode: 'idle', idle: '24h' };
const NONE = { mode: 'none' };

let scene: Scene;

afterEach(() => scene.close());

function write(reset: Record<string, string>): void {
  writeFileSync(join(scene.home, 'config.yaml'), JSON.stringify({ sessions: { reset } }));
}

/** The two ways in which changed rules come. */
const WAYS = {
  'at a reload': async (reset: Record<string, string>) => {
    write(reset);
    await scene.gateway.useRules(loadConfig({ home: scene.home, env: {} }).sessions);
  },
  'at a start': async (reset: Record<string, string>) => {
    await scene.stop();
    write(reset);
    await scene.start();
    await scene.until('the rules are applied', async () => (await marked())?.includes(reset.mode ?? '') ?? false);
  },
};

const marked = (): Promise<string | null> => scene.store.read('findSetting', { name: 'reset_rules' });

describe.each(Object.entries(WAYS))('a changed reset rule reaches every open session %s', (_, change) => {
  test('one that would have expired does not, and is there after its time', async () => {
    scene = await Scene.open({ sessions: { reset: IDLE } });
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    await change(NONE);
    expect(await scene.session(id)).toMatchObject({ expiresAt: null, expiresCause: null });
    scene.later(9 * DAY);
    await scene.gateway.engine.expire('watcher');
    expect(await scene.session(id)).toMatchObject({ state: 'open' });
  });

  test('one that had no deadline gets one, and expires by it', async () => {
    scene = await Scene.open({ sessions: { reset: NONE } });
    await scene.ask('1', 'hello');
    const { id, lastActivityAt } = await scene.sessionOf('1');
    await change(IDLE);
    expect(await scene.session(id)).toMatchObject({ expiresAt: lastActivityAt + DAY, expiresCause: 'idle' });
    scene.later(DAY);
    await scene.gateway.engine.expire('watcher');
    expect(await scene.session(id)).toMatchObject({ endReason: 'idle_expiry' });
  });
});

test('more sessions than a batch are reached; those that keep their deadline are not written', async () => {
  scene = await Scene.open({ sessions: { reset: IDLE, reset_by_platform: { other: IDLE } } });
  const { engine } = scene.gateway;
  for (let i = 0; i < 450; i++) await engine.start(scene.conversation(String(i)));
  const kept = await engine.start({ ...scene.conversation('kept'), key: 'agent:main:other:dm:1', platform: 'other' });
  const { sessions } = loadConfig({ home: scene.home, env: {} });
  const none = { ...sessions, reset: { ...sessions.reset, mode: 'none' } } as const;
  expect(await scene.gateway.useRules(none)).toBe(450);
  expect(await scene.session(kept.id)).toEqual(kept);
  expect(await scene.store.read('nextDeadline', {})).not.toBeNull();
  // The same rules again: nothing is walked over.
  expect(await scene.gateway.useRules(none)).toBe(0);
});

test('a start past the deadline of sessions under rules that let them stay ends none of them', async () => {
  scene = await Scene.open({ sessions: { reset: IDLE } });
  await scene.ask('1', 'hello');
  const { id } = await scene.sessionOf('1');
  await scene.stop();
  scene.later(3 * DAY);
  write(NONE);
  await scene.start();
  await scene.until('the rules are applied', async () => (await marked())?.includes('none') ?? false);
  expect(await scene.ask('1', 'still there?')).toBe('did: still there?');
  expect(await scene.sessionOf('1')).toMatchObject({ id, expiresAt: null });
});
