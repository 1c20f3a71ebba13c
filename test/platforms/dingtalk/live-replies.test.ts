import { describe, expect, test } from 'vitest';
import type { ModelScript } from '../../fakes/model-script.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import { DingtalkWorld, GROUP } from './world.ts';

const CREATE = '/v1.0/card/instances/createAndDeliver';
const STREAMING = '/v1.0/card/streaming';
const REPLY = `# Cards\n\n${Array.from({ length: 10 }, (_, line) => `line ${line} *of* it`).join('\n')}\n\n1. end`;
const slow: ModelScript = () => ({ text: REPLY, betweenMs: 60 });

/** A gateway process whose replies grow on cards. */
async function openScene(where: 'dm' | 'group' = 'dm') {
  const world = await DingtalkWorld.open({ card: true });
  const mode = { ...subject.modes[0]!, open: async () => world };
  const scene = await PlatformScene.open(subject, mode, { display: { streaming: true } }, slow);
  await world.say({ text: 'tell me', where });
  return { world, fake: world.fake, scene, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

describe('a reply that grows on a card', () => {
  test('is in the end what the agent said, in a group too', async () => {
    await using at = await openScene('group');
    await at.scene.until('the card', () => at.world.shown()[0]?.stream === 'finished');
    expect(at.world.shown()).toMatchObject([{ chat: GROUP, text: REPLY }]);
    expect(at.fake.callsTo(STREAMING).length).toBeGreaterThan(1);
  });

  test('that no place takes is one message', async () => {
    await using at = await openScene();
    at.fake.cards.undeliverable = true;
    await at.scene.until('the reply', () => at.world.shown().some(({ text }) => text === REPLY));
    expect(at.world.shown()).toHaveLength(1);
    expect(at.fake.messages[0]?.way).toBe('webhook');
    expect(at.fake.callsTo(CREATE).length).toBeGreaterThan(0);
  });

  test('whose card is taken away in the middle is one message', async () => {
    await using at = await openScene();
    await at.scene.until('a part', () => at.world.shown().some(({ text }) => text.startsWith('# Cards')));
    const [card] = at.fake.cards.all.keys();
    at.fake.cards.all.delete(card ?? '');
    at.fake.messages.splice(0);
    await at.scene.until('the reply', () => at.world.shown().some(({ text }) => text === REPLY));
    expect(at.world.shown()).toHaveLength(1);
    expect(at.fake.messages[0]?.way).toBe('webhook');
  });

  test('waits where the server asks for patience, and is whole on its card', async () => {
    await using at = await openScene();
    const limit = { status: 403, body: { code: 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', message: 'qps' } };
    at.fake.failNext(STREAMING, limit, limit);
    at.fake.failNext(CREATE, 'lost');
    await at.scene.until('the card', () => at.world.shown()[0]?.stream === 'finished');
    expect(at.world.shown()).toMatchObject([{ text: REPLY }]);
  });

  test('is finished on the same card when its process is killed while the server takes the end', async () => {
    await using at = await openScene();
    await new Promise<void>((resolve) => {
      at.world.onTaken(() => {
        at.world.onTaken(null);
        process.kill(at.scene.gateway.pid, 'SIGKILL');
        resolve();
      });
    });
    await at.scene.kill();
    const [card] = at.fake.cards.all.values();
    const before = card?.writes ?? 0;
    await at.scene.start();
    await at.scene.until('the end again', () => (card?.writes ?? 0) > before && card?.stream === 'finished');
    await at.world.say({ text: 'and now?' });
    await at.scene.until('the next reply', () => at.world.shown().length === 2, 30_000);
    await at.scene.until('its end', () => at.world.shown()[1]?.stream === 'finished', 30_000);
    expect(at.world.shown().map(({ text }) => text)).toEqual([REPLY, REPLY]);
  });
});
