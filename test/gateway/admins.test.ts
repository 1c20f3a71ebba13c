import { afterEach, describe, expect, test } from 'vitest';
import { PeopleScene } from './people-scene.ts';

let scene: PeopleScene;

afterEach(() => scene.close());

const [ANN, BOB, EVE] = [1, 2, 3];

async function withAdmin(settings: Record<string, unknown> = {}): Promise<void> {
  scene = await PeopleScene.open([ANN, BOB, EVE], settings);
  await scene.promote(EVE);
  scene.say(EVE, 'hello');
  await scene.sees(EVE, 'did: hello');
}

describe('what the agent asks for a person who is no admin', () => {
  test('that person cannot allow; an admin is asked in their own chat, and can', async () => {
    await withAdmin();
    scene.say(BOB, 'please ask');
    expect(await scene.sees(BOB, 'An admin has to allow this')).toContain('spin the wheel\nThe admins were asked.');
    expect(await scene.sees(EVE, 'needs an admin')).toBe(
      'Person 2 (telegram:2) needs an admin in their direct chat. Allow this? spin the wheel',
    );
    expect(scene.button(BOB, 'Allow')).toBeNull();
    const data = scene.button(EVE, 'Allow') ?? '';
    expect(await scene.answer(scene.press(BOB, data))).toBe('Only an admin may allow this. You may refuse it.');
    expect(await scene.answer(scene.press(ANN, data))).toBe('This was not asked of you.');
    scene.say(BOB, '/approve');
    await scene.sees(BOB, 'Only an admin may allow this.');
    expect(await scene.answer(scene.press(EVE, data))).toBe('Allowed.');
    await scene.sees(BOB, 'did: please ask, allowed');
  });

  test('that person may refuse', async () => {
    await withAdmin();
    scene.say(BOB, 'please ask');
    await scene.sees(BOB, 'An admin has to allow this');
    scene.say(BOB, '/deny not now');
    await scene.sees(BOB, 'did: please ask, refused: not now');
  });

  test('is told to nobody while there is no admin, and says how to make one', async () => {
    scene = await PeopleScene.open([BOB]);
    scene.say(BOB, 'please ask');
    expect(await scene.sees(BOB, 'An admin has to allow this')).toContain('moirai pairing promote telegram 2');
    scene.say(BOB, '/deny');
    await scene.sees(BOB, 'refused');
  });

  test('is asked in the home channel, and said so, when no admin has a direct chat', async () => {
    scene = await PeopleScene.open([BOB, EVE]);
    await scene.promote(EVE);
    scene.say(EVE, '/sethome', 'topic');
    await scene.sees('topic', 'This is the home channel now');
    scene.say(BOB, 'please ask');
    expect(await scene.sees(BOB, 'An admin has to allow this')).toContain('The home channel was asked.');
    await scene.sees('topic', 'needs an admin in their direct chat');
    const data = scene.button('topic', 'Allow') ?? '';
    expect(await scene.answer(scene.press(EVE, data, 'topic'))).toBe('Allowed.');
    await scene.sees(BOB, 'did: please ask, allowed');
  });

  test('in a topic an admin who is there allows by the button', async () => {
    await withAdmin();
    scene.say(EVE, 'hello', 'topic');
    await scene.sees('topic', 'hello');
    scene.say(BOB, 'please ask', 'topic');
    expect(await scene.sees('topic', 'spin the wheel')).toContain('An admin has to allow this');
    const data = scene.button('topic', 'Allow') ?? '';
    expect(await scene.answer(scene.press(EVE, data, 'topic'))).toBe('Allowed.');
    await scene.sees('topic', ', allowed');
  });
});

test('with access.approvals: asker who asked in a topic may allow it, and nobody else but an admin', async () => {
  scene = await PeopleScene.open([ANN, BOB], { access: { approvals: 'asker' } });
  scene.say(ANN, 'hello', 'topic');
  await scene.sees('topic', 'hello');
  scene.say(BOB, 'please ask', 'topic');
  await scene.sees('topic', 'Allow this? spin the wheel');
  const data = scene.button('topic', 'Allow') ?? '';
  expect(await scene.answer(scene.press(ANN, data, 'topic'))).toBe('This was not asked of you.');
  expect(await scene.answer(scene.press(BOB, data, 'topic'))).toBe('Allowed.');
  await scene.sees('topic', ', allowed');
});

test('with access.approvals: asker who has the same id on another platform answers nothing', async () => {
  scene = await PeopleScene.open([BOB], { access: { approvals: 'asker' } });
  scene.say(BOB, 'please ask');
  await scene.sees(BOB, 'Allow this? spin the wheel');
  const id = (scene.button(BOB, 'Allow') ?? '').split(':').at(-1) ?? '';
  const { conversations, chat } = scene.gateway.gateway;
  const by = await chat.access.answerer({ platform: 'pigeon', userId: String(BOB) });
  const conversation = { ...scene.gateway.conversation('loft'), userId: String(BOB) };
  for (const text of [`/approve ${id}`, `/deny ${id}`]) {
    expect(await conversations.receive({ conversation, text, originRef: null, by })).toMatchObject({
      text: 'This was not asked of you.',
    });
  }
  scene.say(BOB, '/approve');
  await scene.sees(BOB, 'did: please ask, allowed');
});

test('/restart and /sethome are for admins, whoever else was let in', async () => {
  await withAdmin();
  scene.say(BOB, 'hello');
  await scene.sees(BOB, 'did: hello');
  for (const command of ['/restart', '/sethome']) {
    scene.say(BOB, command);
    expect(await scene.sees(BOB, command)).toBe(
      `${command} is for admins. Whoever runs the gateway makes an admin with: moirai pairing promote telegram 2`,
    );
  }
  scene.say(EVE, '/sethome');
  await scene.sees(EVE, 'This is the home channel now');
  scene.say(EVE, '/restart');
  await scene.sees(EVE, 'There is no gateway to restart here.');
  scene.say(EVE, '/whoami');
  await scene.sees(EVE, 'You are 3 on telegram, an admin.');
});
