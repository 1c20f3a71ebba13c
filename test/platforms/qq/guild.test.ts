import { expect, test } from 'vitest';
import { PlatformScene } from '../gateway-suite.ts';
import { subject } from './subject.ts';
import type { QqWorld } from './world.ts';

const [websocket] = subject.modes;

test('what is said in a channel is a session of its guild and itself, answered there, with a sign at the message', async () => {
  const settings = { sessions: { group_per_user: false }, display: { reactions: true } };
  await using scene = await PlatformScene.open(subject, websocket!, settings);
  const { server } = scene.world as QqWorld;
  await scene.until('the bot online', () => server.gateway.hasSession);
  server.messages.said('08aa', '/channels/4001');
  const author = { id: '1234567890', username: 'Ada', bot: false };
  const d = { id: '08aa', channel_id: '4001', guild_id: '3001', content: '<@!777000777> hello', author };
  await scene.world.push({ op: 0, id: 'AT_MESSAGE_CREATE:1', t: 'AT_MESSAGE_CREATE', d });
  await scene.until('the answer', () => server.messages.shown.length === 1);
  expect(server.messages.shown[0]).toMatchObject({
    path: '/channels/4001',
    text: expect.stringContaining('did: '),
    body: { msg_id: '08aa', message_reference: { message_id: '08aa' } },
  });
  const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
  expect(data.map(({ key }) => key)).toEqual(['agent:main:qq:channel:3001:4001']);
  await scene.until('a sign', () => server.reactions.get('08aa')?.has('2/128077') === true);
});
