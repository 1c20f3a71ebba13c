import { expect, test } from 'vitest';
import type { ModelScript } from '../../fakes/model-script.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import type { QqWorld } from './world.ts';

const WORDS = Array.from({ length: 20 }, (_, word) => `word${word}`).join(' ');
const slow: ModelScript = () => ({ text: WORDS, betweenMs: 100 });

test('a growing reply is one message when its process is killed while the server takes its end', async () => {
  const [websocket] = subject.modes;
  await using scene = await PlatformScene.open(subject, websocket!, { display: { streaming: true } }, slow);
  const world = scene.world as QqWorld;
  await world.say({ text: 'tell me' });
  await new Promise<void>((resolve) => {
    world.onTaken(() => {
      if (world.shown()[0]?.stream !== 'finished') return;
      world.onTaken(null);
      process.kill(scene.gateway.pid, 'SIGKILL');
      resolve();
    });
  });
  await scene.kill();
  await scene.start();
  await scene.until('it is known to have arrived', async () => {
    const sent = await scene.gateway.events('delivery:sent');
    return sent.length === 1;
  });
  expect(world.shown()).toMatchObject([{ text: WORDS, stream: 'finished' }]);
});
