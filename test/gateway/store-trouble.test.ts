import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { FaultyDisk, whyNoDiskFaults } from '../support/disk-faults.ts';
import { RUN_ALL } from '../support/share.ts';
import { TroubleScene, type TroubleSceneOptions } from './trouble-scene.ts';

const whyNot = whyNoDiskFaults();
const CHATS = 5;
/** Together: they mostly wait. */
const TOGETHER = { timeout: 400_000, concurrent: true };
const withFaults = test.skipIf(whyNot !== undefined && !RUN_ALL);

async function openScene(
  { onTestFinished }: TestContext,
  options: Omit<TroubleSceneOptions, 'chats'>,
): Promise<TroubleScene> {
  const scene = await TroubleScene.open({ ...options, chats: CHATS });
  onTestFinished(() => scene.close());
  return scene;
}

async function onFaultyDisk(
  context: TestContext,
  settings: Record<string, unknown> = {},
): Promise<{ scene: TroubleScene; disk: FaultyDisk }> {
  const disk = new FaultyDisk();
  context.onTestFinished(() => disk.close());
  return { disk, scene: await openScene(context, { settings, environment: disk.environment }) };
}

describe('a gateway goes on by itself', () => {
  withFaults.for(RUN_ALL ? [5, 60, 100] : [5])(
    'when its disk was full for %i s: every message is answered once and in order, and it was not ready meanwhile',
    TOGETHER,
    async (seconds, context) => {
      const { scene, disk } = await onFaultyDisk(context);
      await scene.talk(2000);
      disk.fail('full');
      const began = performance.now();
      await scene.talk(seconds * 1000);
      const refused = await scene.gateway.post('/v1/chat', { text: 'now' });
      expect(refused).toMatchObject({ status: 503, answer: { error: { code: 'store_full' } } });
      expect((await fetch(`${scene.gateway.url}/health`)).status).toBe(200);
      const ended = performance.now();
      disk.recover();
      await scene.talk(2000);
      await scene.expectAllAnswered();
      scene.expectHonest(began, ended, ['store_full']);
      scene.expectReadySoonAfter(ended);
    },
  );

  withFaults(
    'when its disk was full for longer than its lease, in the same process under a new one',
    TOGETHER,
    async (context) => {
      const { scene, disk } = await onFaultyDisk(context, { sessions: { heartbeat: '500ms', lease_ttl: '8s' } });
      await scene.talk(2000);
      disk.fail('full');
      const began = performance.now();
      await scene.talk(13_000);
      const ended = performance.now();
      disk.recover();
      await scene.talk(3000);
      await scene.expectAllAnswered();
      scene.expectHonest(began, ended, ['store_full']);
      const instances = (await scene.gateway.events('gateway:startup')).map(({ instance }) => instance);
      expect(new Set(instances).size).toBe(2);
    },
  );

  withFaults(
    'when nothing could be synced for 5 s: every message is answered once and in order',
    TOGETHER,
    async (context) => {
      const { scene, disk } = await onFaultyDisk(context);
      await scene.talk(2000);
      disk.fail('sync');
      const began = performance.now();
      await scene.talk(5000);
      const ended = performance.now();
      disk.recover();
      await scene.talk(2000);
      await scene.expectAllAnswered();
      scene.expectHonest(began, ended, ['store_io', 'store_outcome_unknown']);
      scene.expectReadySoonAfter(ended);
    },
  );
  test(
    'when its database file is back after 5 s: every message is answered once and in order',
    TOGETHER,
    async (context) => {
      const scene = await openScene(context, {});
      const path = join(scene.gateway.home, 'state.db');
      await scene.talk(2000);
      renameSync(path, `${path}.away`);
      const began = performance.now();
      await scene.talk(5000);
      const refused = await scene.gateway.post('/v1/chat', { text: 'now' });
      expect(refused).toMatchObject({ status: 503, answer: { error: { code: 'store_replaced' } } });
      const ended = performance.now();
      renameSync(`${path}.away`, path);
      await scene.talk(2000);
      await scene.expectAllAnswered();
      scene.expectHonest(began, ended, ['store_replaced', 'store_outcome_unknown']);
      scene.expectReadySoonAfter(ended);
    },
  );

  withFaults('to its end when it is told to stop while its disk is full', TOGETHER, async (context) => {
    const { scene, disk } = await onFaultyDisk(context, { gateway: { drain_timeout: '2s' } });
    await scene.talk(2000);
    disk.fail('full');
    await scene.talk(2000);
    expect(await scene.gateway.end('SIGTERM')).not.toBeNull();
    disk.recover();
    await scene.gateway.start();
    expect(await scene.gateway.chat({ text: 'hello' })).toMatchObject({ status: 200, outcome: 'done' });
  });
});
