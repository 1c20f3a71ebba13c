import { afterEach, describe, expect, test } from 'vitest';
import { FaultyDisk, whyNoDiskFaults } from '../support/disk-faults.ts';
import { RUN_ALL } from '../support/share.ts';
import { TroubleScene } from './trouble-scene.ts';

const whyNot = whyNoDiskFaults();
const CHATS = 5;
const TIMEOUT = { timeout: 400_000 };

const opened: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function onFaultyDisk(
  settings: Record<string, unknown> = {},
): Promise<{ scene: TroubleScene; disk: FaultyDisk }> {
  const disk = new FaultyDisk();
  opened.push(() => disk.close());
  const scene = await TroubleScene.open({ settings, environment: disk.environment, chats: CHATS });
  opened.push(() => scene.close());
  return { scene, disk };
}

describe.skipIf(whyNot !== undefined && !RUN_ALL)('a gateway whose disk', () => {
  test.each(RUN_ALL ? [5, 60, 100] : [5])(
    'is full for %i s answers every message once and in order afterwards, and says meanwhile that it is not ready',
    TIMEOUT,
    async (seconds) => {
      const { scene, disk } = await onFaultyDisk();
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
    },
  );

  test(
    'keeps it in trouble for longer than its lease goes on in the same process under a new one',
    TIMEOUT,
    async () => {
      const { scene, disk } = await onFaultyDisk({ sessions: { heartbeat: '500ms', lease_ttl: '4s' } });
      await scene.talk(2000);
      const [before] = (await scene.gateway.events('gateway:startup')).map(({ instance }) => instance);
      disk.fail('full');
      const began = performance.now();
      await scene.talk(8000);
      const ended = performance.now();
      disk.recover();
      await scene.talk(3000);
      await scene.expectAllAnswered();
      scene.expectHonest(began, ended, ['store_full']);
      const instances = (await scene.gateway.events('gateway:startup')).map(({ instance }) => instance);
      expect(instances[0]).toBe(before);
      expect(new Set(instances).size).toBe(2);
    },
  );
});
