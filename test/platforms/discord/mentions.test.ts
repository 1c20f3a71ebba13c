import { expect, test } from 'vitest';
import { OWN_ROLE } from '../../fakes/discord-state.ts';
import { until } from '../contract/scene.ts';
import { openScene } from './scene.ts';
import { CHANNEL, person } from './world.ts';

test('the role that a server has made for the bot names it, and no other role does', async () => {
  await using scene = await openScene();
  await scene.connected();
  const other = '200000000000003021';
  scene.fake.say(CHANNEL, person(), { content: `<@&${other}> hello`, mention_roles: [other] });
  scene.fake.say(CHANNEL, person(), { content: `<@&${OWN_ROLE}> /status`, mention_roles: [OWN_ROLE] });
  scene.fake.say(CHANNEL, person(), { content: `hello <@&${OWN_ROLE}>`, mention_roles: [OWN_ROLE] });
  await until(() => scene.inbox.received.length === 3, 'all of them');
  expect(scene.inbox.received.map(({ text, addressed }) => [text, addressed])).toEqual([
    [`<@&${other}> hello`, false],
    ['/status', true],
    ['hello @Moirai', true],
  ]);
  expect(scene.fake.callsOf('GET', /roles$/)).toHaveLength(1);
});

test('a server that does not tell its roles keeps no message back', async () => {
  await using scene = await openScene();
  await scene.connected();
  scene.fake.failNext('GET /roles', { status: 403, body: { code: 50013, message: 'Missing Permissions' } });
  scene.fake.say(CHANNEL, person(), { content: `<@&${OWN_ROLE}> hello`, mention_roles: [OWN_ROLE] });
  await until(() => scene.inbox.received.length === 1, 'the message');
  expect(scene.inbox.received[0]).toMatchObject({ addressed: false });
});
