import { expect, test } from 'vitest';
import { lastUserLine } from '../../gateway/user-lines.ts';
import type { Where } from '../contract/scene.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import type { QqWorld } from './world.ts';

const [websocket, webhook] = subject.modes;

test.each([
  ['to a person, over the socket', 'dm', websocket],
  ['to a person, by webhook', 'dm', webhook],
  ['in a group', 'group', websocket],
] as const)(
  'an answer %s whose window is over is told, kept, and sent when they write again',
  async (_, where, mode) => {
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const settings = { platform: { require_mention: false } };
    const script = ({ body }: { body: { messages: never } }, index: number) => ({
      text: `did: ${lastUserLine(body.messages)}`,
      ...(index === 0 ? { pause: { after: 1, until: closed } } : {}),
    });
    await using scene = await PlatformScene.open(subject, mode!, settings, script as never);
    const world = scene.world as QqWorld;
    const say = (text: string) => world.say({ text, where: where as Where });
    await say('first');
    await scene.until('the model at work', () => scene.model.requests.length === 1);
    world.closeWindow();
    close();
    const failed = (): Promise<Record<string, unknown>[]> => scene.gateway.events('delivery:failed');
    await scene.until('it is told', async () => (await failed()).length === 1);
    expect((await failed())[0]?.error).toContain('QQ takes answers for a while only');
    expect(world.shown()).toEqual([]);
    await say('second');
    await scene.until('both answers', () => world.shown().length === 2);
    const texts = world.shown().map(({ text }) => text);
    expect(texts.sort()).toEqual([
      '(This is for an earlier message of yours. It came too late to be sent then.)\n\ndid: first',
      'did: second',
    ]);
  },
);
