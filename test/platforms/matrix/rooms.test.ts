import { describe, expect, test } from 'vitest';
import { ENCRYPTED_TEXT } from '../../../src/platforms/matrix/membership.ts';
import { never, TestInbox, until } from '../contract/scene.ts';
import { openMatrix } from './open-matrix.ts';
import { dmOf, personOf } from './world.ts';

const DM = dmOf(0);
const SECRET = '!secret:example.org';
const text = (body: string) => ({ msgtype: 'm.text', body });
const encrypted = { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'AwgAEnAC', session_id: 's' };

describe('what a room is', () => {
  test('a talk between two, a room with a name, or one that our account lists', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    fake.rooms.create('!named:example.org', [personOf(0), fake.self], 'Two of us');
    fake.rooms.create('!three:example.org', [personOf(0), personOf(1), fake.self]);
    fake.rooms.create('!listed:example.org', [personOf(0), personOf(1), fake.self], 'Bridge');
    fake.rooms.direct = { [personOf(0)]: ['!listed:example.org'] };
    const { inbox } = await scene.begin();
    for (const room of [DM, '!named:example.org', '!three:example.org', '!listed:example.org']) {
      world.add(room, 0, text(room));
    }
    await until(() => inbox.received.length === 4, 'all of them');
    const types = new Map(inbox.received.map(({ place }) => [place.chat, place.type]));
    expect(Object.fromEntries(types)).toEqual({
      [DM]: 'dm',
      '!named:example.org': 'group',
      '!three:example.org': 'group',
      '!listed:example.org': 'dm',
    });
  });

  test('is remembered: the next process asks nobody', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform, inbox } = await scene.begin();
    await world.say({ text: 'one' });
    await until(() => inbox.texts.includes('one'), 'the first');
    await platform.stop();
    const asked = fake.callsOf('joined_members').length;
    const next = await scene.begin();
    await world.say({ text: 'two' });
    await until(() => next.inbox.texts.includes('two'), 'the second');
    expect(next.inbox.received.at(-1)?.place).toMatchObject({ type: 'dm', chat: DM, name: 'Person0' });
    expect(fake.callsOf('joined_members')).toHaveLength(asked);
  });

  test('a talk between two becomes a group when somebody comes, and stays one when they leave', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { inbox, platform } = await scene.begin();
    const say = async (body: string) => {
      world.add(DM, 0, text(body));
      await until(() => inbox.texts.includes(body), body);
      return inbox.received.at(-1)?.place.type;
    };
    expect(await say('alone')).toBe('dm');
    fake.rooms.member(DM, personOf(0), 'join');
    expect(await say('under another name')).toBe('dm');
    fake.rooms.member(DM, personOf(7), 'join');
    expect(await say('not alone')).toBe('group');
    fake.rooms.member(DM, personOf(7), 'leave');
    expect(await say('alone again')).toBe('group');
    expect((await platform.listPlaces(never)).find(({ chat }) => chat === DM)).toMatchObject({ type: 'group' });
  });

  test('is not guessed where the server does not say who is there', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    fake.failNext('joined_members', { status: 403, errcode: 'M_FORBIDDEN' });
    const next = await scene.begin();
    world.add(DM, 0, text('hello'));
    await until(() => next.inbox.received.length === 1, 'the first');
    world.add(DM, 0, text('hello again'));
    await until(() => next.inbox.received.length === 2, 'the second');
    expect(next.inbox.received.map(({ place }) => place.type)).toEqual(['group', 'dm']);
  });

  test.each([
    ['is away for a while', Array.from({ length: 6 }, () => ({ html: 502 }))],
    ['takes the token no longer', [{ status: 401, errcode: 'M_UNKNOWN_TOKEN', more: { soft_logout: true } }]],
  ] as const)('is asked until the server says it, where it %s', async (_, faults) => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    fake.failNext('joined_members', ...faults);
    const next = await scene.begin();
    world.add(DM, 0, text('hello'));
    await until(() => next.inbox.received.length === 1, 'the message');
    expect(next.inbox.received[0]).toMatchObject({ addressed: true, place: { type: 'dm', chat: DM } });
  });

  test('and how we are called there is asked until the server says it, before anything is taken', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    fake.rooms.create('!listed:example.org', [personOf(0), personOf(1), fake.self], 'Bridge');
    fake.rooms.direct = { [personOf(0)]: ['!listed:example.org'] };
    const { platform } = await scene.begin();
    await platform.stop();
    for (const call of ['account_data', 'profile']) {
      fake.failNext(call, ...Array.from({ length: 6 }, () => ({ html: 502 })));
    }
    const next = await scene.begin();
    world.add('!listed:example.org', 0, text('hello'));
    await world.say({ text: 'Agent, are you there?', where: 'group' });
    await until(() => next.inbox.received.length === 2, 'both messages');
    expect(next.inbox.received.map(({ addressed }) => addressed)).toEqual([true, true]);
  });

  test('is not asked for ever where the server answers everything else', async () => {
    await using scene = await openMatrix({ speed: 2000 });
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    await platform.stop();
    fake.failNext('joined_members', ...Array.from({ length: 200 }, () => ({ html: 502 })));
    const next = await scene.begin();
    world.add(DM, 0, text('hello'));
    await until(() => next.inbox.received.length === 1, 'the message');
    expect(next.inbox.received[0]?.place.type).toBe('group');
  });

  test('places are listed with their names', async () => {
    await using scene = await openMatrix();
    const { platform } = await scene.begin();
    const places = await platform.listPlaces(never);
    expect(places).toContainEqual({ type: 'group', chat: '!group:example.org', name: 'Group' });
    expect(places).toContainEqual({ type: 'dm', chat: DM });
  });
});

describe('an invite', () => {
  const room = '!new:example.org';
  const stranger = '@eve:far.org';

  test('of somebody who may is followed, also when it came before the first start', async () => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    fake.rooms.create(room, [personOf(0)], 'New');
    fake.rooms.invite(room, personOf(0));
    const { inbox } = await scene.begin();
    await until(() => inbox.events.length > 0, 'that we came');
    expect(inbox.events).toMatchObject([{ kind: 'added', place: { type: 'group', chat: room, name: 'New' } }]);
    world.add(room, 0, text('welcome'));
    await until(() => inbox.texts.includes('welcome'), 'the message');
  });

  test.each([
    ['soon', 0],
    ['and much was said since', 120],
  ])('begins what is for us, and nothing from before: we came %s', async (_, since) => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    fake.rooms.create(room, [personOf(0)], 'New');
    world.add(room, 0, text('before the invite'));
    const { platform } = await scene.begin();
    await platform.stop();
    fake.rooms.invite(room, personOf(0));
    const texts = Array.from({ length: 70 }, (_, index) => `are you there? ${index}`);
    for (const each of texts) world.add(room, 0, text(each));
    const later = Array.from({ length: since }, (_each, index) => `welcome ${index}`);
    fake.onJoin = () => {
      for (const each of later) world.add(room, 0, text(each));
    };
    const { inbox } = await scene.begin();
    await until(() => inbox.texts.length >= texts.length + later.length, 'what was said meanwhile');
    expect(inbox.texts).toEqual([...texts, ...later]);
  });

  test('of anybody else is declined, and told in the log', async () => {
    await using scene = await openMatrix();
    const { fake } = scene;
    fake.rooms.create(room, [stranger], 'New');
    await scene.begin();
    fake.rooms.invite(room, stranger);
    fake.wake();
    await until(() => fake.callsOf('leave').length === 1, 'the answer');
    expect(fake.callsOf('join')).toEqual([]);
    expect(scene.warnings.join('\n')).toContain(stranger);
  });

  test('of a person in `allow` is followed, whatever server they are of', async () => {
    await using scene = await openMatrix({ allow: [stranger] });
    const { fake } = scene;
    fake.rooms.create(room, [stranger], 'New');
    await scene.begin();
    fake.rooms.invite(room, stranger);
    fake.wake();
    await until(() => fake.rooms.isJoined(room), 'that we came');
    expect(fake.callsOf('join').map(({ query }) => query.get('via'))).toEqual(['far.org']);
  });

  test('that a server cannot answer keeps nobody else waiting, and is followed when it can', async () => {
    await using scene = await openMatrix();
    const { fake, world, state } = scene;
    const { inbox } = await scene.begin();
    fake.rooms.create(room, [personOf(0)], 'New');
    const first = state.get('since');
    fake.failNext('join', ...Array.from({ length: 12 }, () => ({ html: 502 })));
    fake.rooms.invite(room, personOf(0));
    fake.wake();
    await until(() => fake.callsOf('join').length > 0, 'the first try');
    for (let index = 0; index < 60; index += 1) {
      await world.say({ text: `meanwhile ${index}`, person: 1 });
      await until(() => inbox.texts.includes(`meanwhile ${index}`), `message ${index}`, 2000);
    }
    await until(() => state.get('since') !== first, 'the position', 2000);
    expect(fake.rooms.isJoined(room)).toBe(false);
    await until(() => fake.rooms.isJoined(room), 'that we came');
    world.add(room, 0, text('welcome'));
    await until(() => inbox.texts.includes('welcome'), 'what is said there');
  });

  test('that could not be answered yet when the gateway stopped is answered by the next process', async () => {
    await using scene = await openMatrix();
    const { fake, state } = scene;
    const { platform } = await scene.begin();
    fake.rooms.create(room, [personOf(0)], 'New');
    const first = state.get('since');
    fake.failNext('join', ...Array.from({ length: 10 }, () => ({ html: 502 })));
    fake.rooms.invite(room, personOf(0));
    fake.wake();
    await until(() => state.get('since') !== first, 'that nothing waits for it');
    await platform.stop();
    expect(fake.rooms.isJoined(room)).toBe(false);
    await scene.begin();
    await until(() => fake.rooms.isJoined(room), 'that we came', 2000);
    await until(() => !state.has('comings'), 'that it is forgotten', 2000);
  });

  test('that a server can never answer is given up, and told', async () => {
    await using scene = await openMatrix({ speed: 1000 });
    const { fake } = scene;
    await scene.begin();
    fake.rooms.create(room, [personOf(0)], 'New');
    fake.failNext('join', ...Array.from({ length: 100 }, () => ({ html: 502 })));
    fake.rooms.invite(room, personOf(0));
    fake.wake();
    await until(() => scene.warnings.join('\n').includes('given up'), 'that it was given up');
    const tries = fake.callsOf('join').length;
    expect(tries).toBeGreaterThan(10);
    await scene.world.say({ text: 'hello' });
    await until(() => fake.receipts.has(DM), 'the message');
    expect(fake.callsOf('join')).toHaveLength(tries);
  });

  test('is not given up while the server is away altogether, however long', async () => {
    await using scene = await openMatrix({ speed: 2000 });
    const { fake } = scene;
    await scene.begin();
    fake.rooms.create(room, [personOf(0)], 'New');
    fake.failNext('join', ...Array.from({ length: 30 }, () => ({ html: 502 })));
    fake.failNext('whoami', ...Array.from({ length: 30 }, () => ({ html: 502 })));
    fake.rooms.invite(room, personOf(0));
    fake.wake();
    await until(() => fake.rooms.isJoined(room), 'that we came');
    expect(fake.callsOf('join')).toHaveLength(31);
  });

  test('that is not answered yet when the gateway stops comes again', async () => {
    await using scene = await openMatrix();
    const { fake } = scene;
    const { platform } = await scene.begin();
    fake.rooms.create(room, [personOf(0)], 'New');
    fake.failNext('join', 'silence');
    fake.rooms.invite(room, personOf(0));
    fake.wake();
    await until(() => fake.callsOf('join').length > 0, 'the first try');
    await platform.stop();
    await scene.begin();
    await until(() => fake.rooms.isJoined(room), 'that we came');
  });

  test('is tried again while the server is not well, and given up when it is not there any more', async () => {
    await using scene = await openMatrix();
    const { fake } = scene;
    await scene.begin();
    const more = { retry_after_ms: 100 };
    fake.failNext('join', { html: 502 }, { status: 429, errcode: 'M_LIMIT_EXCEEDED', more });
    fake.rooms.invite(room, personOf(0));
    fake.rooms.rooms.delete(room);
    fake.wake();
    await until(() => fake.callsOf('join').length === 3, 'the third try');
    await scene.world.say({ text: 'hello' });
    await until(() => scene.warnings.join('\n').includes('M_NOT_FOUND'), 'that it was given up');
  });
});

describe('an encrypted room', () => {
  const open = async () => {
    const scene = await openMatrix();
    const { fake } = scene;
    fake.rooms.create(SECRET, [personOf(0), fake.self]);
    const state = { type: 'm.room.encryption', sender: personOf(0), state_key: '', content: encrypted };
    return { ...scene, encrypt: () => fake.rooms.append(SECRET, state) };
  };
  const noticesIn = ({ world }: Awaited<ReturnType<typeof open>>) => {
    return world.shown().filter(({ chat }) => chat === SECRET);
  };

  test('is told once that it cannot be read, whatever is said there and however often the process starts', async () => {
    await using scene = await open();
    const { world } = scene;
    scene.encrypt();
    const { platform } = await scene.begin();
    world.add(SECRET, 0, encrypted, 'm.room.encrypted');
    await until(() => noticesIn(scene).length > 0, 'the notice');
    for (let index = 0; index < 5; index += 1) world.add(SECRET, 0, encrypted, 'm.room.encrypted');
    await world.say({ text: 'done' });
    await until(() => scene.fake.receipts.has(DM), 'the end');
    await platform.stop();
    const next = await scene.begin();
    world.add(SECRET, 0, encrypted, 'm.room.encrypted');
    await world.say({ text: 'and after a restart' });
    await until(() => next.inbox.texts.includes('and after a restart'), 'the end');
    expect(noticesIn(scene).map((shown) => shown.text)).toEqual([ENCRYPTED_TEXT]);
  });

  test('is told once also when the answer to the notice is lost with the process', async () => {
    await using scene = await open();
    scene.encrypt();
    const { platform } = await scene.begin();
    scene.fake.failNext('send', 'lost');
    scene.world.add(SECRET, 0, encrypted, 'm.room.encrypted');
    await until(() => noticesIn(scene).length === 1, 'the notice');
    await platform.stop();
    for (const key of scene.state.keys()) if (key.startsWith('room:')) scene.state.delete(key);
    await scene.begin();
    await until(() => scene.fake.callsOf('send').length > 1, 'the repetition');
    await until(() => scene.state.get(`room:${SECRET}`)?.includes('noticed') === true, 'that it is kept');
    expect(noticesIn(scene)).toHaveLength(1);
  });

  test('is not talked in: neither is what stands there in the clear heard, nor is anything sent there', async () => {
    await using scene = await open();
    const { world } = scene;
    const { platform, inbox } = await scene.begin();
    world.add(SECRET, 0, text('still in the clear'));
    await until(() => inbox.texts.includes('still in the clear'), 'the first');
    scene.encrypt();
    world.add(SECRET, 0, text('in the clear all the same'));
    await until(() => noticesIn(scene).length === 1, 'the notice');
    const place = { type: 'dm', chat: SECRET } as const;
    const failure = await platform
      .send(place, { text: 'words', key: 'dlv_1' }, never)
      .catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', kind: 'forbidden', retryAfterMs: null });
    expect(inbox.texts).toEqual(['still in the clear']);
    expect(noticesIn(scene)).toHaveLength(1);
  });

  test('that we are invited to is told so', async () => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    fake.rooms.create(SECRET, [personOf(0)]);
    fake.rooms.append(SECRET, { type: 'm.room.encryption', sender: personOf(0), state_key: '', content: encrypted });
    await scene.begin();
    fake.rooms.invite(SECRET, personOf(0));
    fake.wake();
    await until(() => world.shown().some(({ chat }) => chat === SECRET), 'the notice');
    expect(world.shown().map((shown) => shown.text)).toEqual([ENCRYPTED_TEXT]);
  });

  test('is not made of another one by a single message that anybody can send', async () => {
    await using scene = await openMatrix();
    const { world } = scene;
    const { inbox, platform } = await scene.begin();
    world.add('!group:example.org', 3, encrypted, 'm.room.encrypted');
    await world.say({ text: 'goes on', where: 'group' });
    await until(() => inbox.texts.includes('goes on'), 'what is said there');
    await platform.send(world.place('group'), { text: 'of course', key: 'dlv_1' }, never);
    expect(world.shown().map((shown) => shown.text)).toEqual([ENCRYPTED_TEXT, 'of course']);
  });
});

describe('a room that goes on as another one', () => {
  const next = '!group2:example.org';
  const upgrade = { body: 'This room has been replaced', replacement_room: next };

  test('is followed: its conversations go on there, and so does what is still sent to the old one', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform, inbox } = await scene.begin();
    fake.rooms.create(next, [personOf(0)], 'Group', '!group:example.org');
    const tombstone = { type: 'm.room.tombstone', sender: personOf(0), state_key: '', content: upgrade };
    fake.rooms.append('!group:example.org', tombstone);
    fake.wake();
    await until(() => inbox.moves.length > 0, 'the move');
    expect(inbox.moves).toEqual([`!group:example.org -> ${next}`]);
    expect(fake.rooms.isJoined(next)).toBe(true);
    await platform.send(world.place('group'), { text: 'late words', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: next, text: 'late words' }]);
    world.add(next, 0, text('here we are'));
    await until(() => inbox.texts.includes('here we are'), 'what is said there');
    expect(inbox.received.at(-1)?.place).toMatchObject({ type: 'group', chat: next });
  });

  test('more than once is followed to the newest', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform, inbox } = await scene.begin();
    const rooms = ['!group:example.org', next, '!group3:example.org'];
    for (const [index, to] of rooms.entries()) {
      const from = rooms[index - 1];
      if (from === undefined) continue;
      fake.rooms.create(to, [personOf(0)], 'Group', from);
      fake.rooms.append(from, tombstone(to));
      fake.wake();
      await until(() => inbox.moves.length === index, 'the move');
    }
    await platform.send(world.place('group'), { text: 'late words', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: rooms.at(-1), text: 'late words' }]);
  });

  const tombstone = (replacement: string) => {
    const content = { ...upgrade, replacement_room: replacement };
    return { type: 'm.room.tombstone', sender: personOf(0), state_key: '', content };
  };

  test('where we may not go stays what it is, since nobody can say that the other one takes its place', async () => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    const { inbox, platform } = await scene.begin();
    fake.failNext('join', { status: 403, errcode: 'M_FORBIDDEN' });
    fake.rooms.append('!group:example.org', tombstone(next));
    await world.say({ text: 'and now?', where: 'group' });
    await until(() => inbox.texts.includes('and now?'), 'what is said after it');
    expect(inbox.moves).toEqual([]);
    expect(scene.warnings.join('\n')).toContain('M_FORBIDDEN');
    await platform.send(world.place('group'), { text: 'still here', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: '!group:example.org' }]);
  });

  const stranger = '@eve:far.org';
  const onlyInvited = { type: 'm.room.join_rules', sender: stranger, state_key: '', content: { join_rule: 'invite' } };

  test.each([
    ['after it was named', false],
    ['while nobody was there', true],
  ])('and takes only the invited is followed by the invite, whoever sends it: %s', async (_, isAway) => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { platform } = await scene.begin();
    fake.rooms.create(next, [stranger], 'Group', '!group:example.org');
    fake.rooms.append(next, onlyInvited);
    if (isAway) await platform.stop();
    fake.rooms.append('!group:example.org', tombstone(next));
    fake.wake();
    if (!isAway) await until(() => fake.callsOf('join').length > 0, 'the refused try');
    fake.rooms.invite(next, stranger);
    fake.wake();
    const inbox = new TestInbox();
    const now = isAway ? (await scene.begin(scene.make(), inbox)).platform : platform;
    await until(() => scene.state.get('room:!group:example.org')?.includes(next) === true, 'that it is followed');
    expect(fake.rooms.isJoined(next)).toBe(true);
    if (isAway) await until(() => inbox.moves.includes(`!group:example.org -> ${next}`), 'the move');
    await now.send(world.place('group'), { text: 'late words', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: next, text: 'late words' }]);
  });

  test.each([
    ['nobody may be invited by, is declined', stranger, false],
    ['may invite us, goes on as nothing else', personOf(0), true],
  ])('is not what somebody invites us into and only says so: who %s', async (_, inviter, isJoined) => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const { inbox, platform } = await scene.begin();
    fake.rooms.create(next, [inviter], 'Group', '!group:example.org');
    fake.rooms.invite(next, inviter);
    fake.wake();
    await until(() => fake.callsOf(isJoined ? 'join' : 'leave').length > 0, 'the answer');
    await world.say({ text: 'still here', where: 'group' });
    await until(() => inbox.texts.includes('still here'), 'what is said');
    if (isJoined) await until(() => inbox.events.length > 0, 'that we came');
    expect([fake.rooms.isJoined(next), inbox.moves]).toEqual([isJoined, []]);
    await platform.send(world.place('group'), { text: 'here', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: '!group:example.org' }]);
  });

  test.each([
    ['a room of somebody else', dmOf(1)],
    ['a room that takes the place of another one', '!other:example.org'],
  ])('is not followed into %s, whoever says so', async (_, victim) => {
    await using scene = await openMatrix();
    const { fake, world } = scene;
    fake.rooms.create('!other:example.org', [personOf(1), fake.self], 'Other', '!older:example.org');
    const { inbox, platform } = await scene.begin();
    fake.rooms.append('!group:example.org', tombstone(victim));
    await world.say({ text: 'and now?', where: 'group' });
    await until(() => inbox.texts.includes('and now?'), 'what is said after it');
    expect(inbox.moves).toEqual([]);
    expect(scene.warnings.join('\n')).toContain(victim);
    await platform.send(world.place('group'), { text: 'a secret of the group', key: 'dlv_1' }, never);
    expect(world.shown()).toMatchObject([{ chat: '!group:example.org' }]);
  });
});

describe('a room that we are removed from', () => {
  test('is told with the reason, what is sent there fails for good, and coming back is asked anew', async () => {
    await using scene = await openMatrix();
    const { world, fake } = scene;
    const inbox = new TestInbox();
    const { platform } = await scene.begin(scene.make(), inbox);
    await world.say({ text: 'hello' });
    await until(() => inbox.texts.length === 1, 'the first');
    fake.rooms.append(DM, {
      ...{ type: 'm.room.member', sender: personOf(0), state_key: fake.self },
      content: { membership: 'ban', reason: 'too loud' },
      unsigned: { prev_content: { membership: 'join' } },
    });
    fake.rooms.member(DM, fake.self, 'leave', personOf(0), 'ban');
    fake.wake();
    await until(() => inbox.events.length > 0, 'that we were removed');
    expect(inbox.events[0]).toMatchObject({
      ...{ kind: 'removed', place: { type: 'dm', chat: DM } },
      reason: 'the agent was banned: too loud',
    });
    const failure = await platform
      .send(world.place('dm'), { text: 'x', key: 'k' }, never)
      .catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ kind: 'gone', retryAfterMs: null });
    fake.rooms.member(DM, personOf(5), 'join');
    fake.rooms.member(DM, fake.self, 'join', fake.self, 'invite');
    world.add(DM, 0, text('welcome back'));
    await until(() => inbox.texts.includes('welcome back'), 'the message');
    expect(inbox.received.at(-1)?.place.type).toBe('group');
  });
});
