import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { SlackServer } from '../../fakes/slack-server.ts';
import { patience } from '../../support/patience.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { openSlack } from './scene.ts';

const ACK_MS = 3000;

describe('an acknowledgement', () => {
  test('comes within three seconds under load, and never before the inbox has written', async () => {
    const slackWaits = patience(ACK_MS);
    await using scene = await openSlack({ speed: 1, before: ({ delivery }) => (delivery.retryMs = slackWaits) });
    const { fake, inbox, world } = scene;
    const written = new Map<string, number>();
    inbox.receive = async (message) => {
      await sleep(150);
      written.set(message.text, performance.now());
      inbox.received.push(message);
    };
    const texts = Array.from({ length: 200 }, (_, index) => ({ text: `message ${index}`, person: index % 40 }));
    for (const said of texts) await world.say(said);
    await until(() => inbox.received.length === texts.length, 'all of them', 20_000);
    await until(() => fake.delivery.pending === 0, 'the acknowledgements', 20_000);
    expect(fake.delivery.acks).toHaveLength(texts.length);
    for (const { payload, sentAt, ackedAt } of fake.delivery.acks) {
      const { text } = (payload as { event: { text: string } }).event;
      expect(ackedAt).toBeGreaterThanOrEqual(written.get(text)!);
      expect(ackedAt - sentAt).toBeLessThan(slackWaits);
    }
    expect(inbox.received).toHaveLength(new Set(inbox.received.map(({ id }) => id)).size);
  });

  test('is not given for what cannot be taken within two seconds: it comes again, and is handed over once', async () => {
    await using scene = await openSlack({ speed: 1, before: ({ delivery }) => (delivery.retryMs = 7000) });
    const { fake, inbox, world } = scene;
    const open = inbox.hold();
    await world.say({ text: 'slow' });
    await until(() => inbox.tried.length === 1, 'the try');
    await sleep(2500);
    open();
    await until(() => inbox.received.length === 1, 'the message');
    await sleep(200);
    expect(fake.delivery.pending).toBe(1);
    await until(() => fake.delivery.pending === 0, 'the acknowledgement of the next one', 20_000);
    expect(inbox.tried.map(({ text }) => text)).toEqual(['slow']);
  }, 60_000);

  test('of a button and of a command does not wait for an inbox that takes nothing', async () => {
    await using scene = await openSlack();
    const { inbox, world, fake, platform } = scene;
    const place = world.place('dm');
    const buttons = [[{ label: 'Yes', data: 'yes' }]];
    const { messageId } = await platform.send(place, { text: 'Allow this?', buttons }, AbortSignal.timeout(5000));
    inbox.answer = 'Thanks.';
    const open = inbox.hold();
    const pressed = world.press(messageId, 'yes');
    await world.command('/moirai', 'status', place.chat);
    expect(
      fake.delivery.acks.filter(({ payload }) => 'command' in payload || payload.type === 'block_actions'),
    ).toHaveLength(2);
    expect([inbox.presses, inbox.received]).toEqual([[], []]);
    open();
    expect(await pressed).toBe('Thanks.');
    await until(() => inbox.texts.includes('/status'), 'the command');
  });
});

describe('what Slack brings once', () => {
  test('a button that could not be taken says so, and is taken when it is pressed again', async () => {
    await using scene = await openSlack();
    const { inbox, world, platform } = scene;
    const buttons = [[{ label: 'Yes', data: 'yes' }]];
    const { messageId } = await platform.send(
      world.place('dm'),
      { text: 'Allow?', buttons },
      AbortSignal.timeout(5000),
    );
    const { press } = inbox;
    inbox.press = () => Promise.reject(new RangeError('the inbox cannot take it now'));
    expect(await world.press(messageId, 'yes')).toBe('This could not be taken. Press the button again.');
    inbox.press = press;
    inbox.answer = 'Thanks.';
    scene.fake.answers.clear();
    expect(await world.press(messageId, 'yes')).toBe('Thanks.');
  });

  test('a command that could not be taken before a stop says so, and is taken when it is entered again', async () => {
    await using scene = await openSlack({ speed: 1 });
    const { inbox, world, platform, fake, driver } = scene;
    inbox.refuseNext(1000);
    const refused = await world.command('/moirai', 'status', 'D42');
    await platform.stop();
    expect(fake.answers.get(refused)).toMatchObject({ text: 'This could not be taken. Enter the command again.' });
    const next = await driver.restart!();
    const later = new TestInbox();
    await next.start(later);
    await until(() => next.state.phase === 'connected', 'connected');
    await world.command('/moirai', 'status', 'D42');
    await until(() => later.received.length === 1, 'the command');
    expect(later.texts).toEqual(['/status']);
  });
});

describe('a mention', () => {
  test('that comes as message and as app_mention is the same message, whichever comes first', async () => {
    await using scene = await openSlack();
    const { inbox, world } = scene;
    world.tell({ text: '@moirai hello', channel: 'C1' });
    await until(() => scene.fake.delivery.pending === 0, 'both');
    expect(inbox.received.length).toBeGreaterThan(0);
    expect(new Set(inbox.received.map(({ id }) => id)).size).toBe(1);
    expect(inbox.received.every(({ addressed, text }) => addressed && text === 'hello')).toBe(true);
  });

  test('that comes as app_mention alone is heard', async () => {
    await using scene = await openSlack();
    const { inbox, world } = scene;
    world.event({
      type: 'app_mention',
      user: 'U42',
      channel: 'C1',
      ts: '1760000999.000100',
      text: '<@UBOT> only this',
    });
    await until(() => inbox.received.length === 1, 'the mention');
    expect(inbox.received[0]).toMatchObject({ id: 'T1:C1:1760000999.000100', text: 'only this', addressed: true });
  });

  test('that comes twice at once is taken once, and both are acknowledged', async () => {
    await using scene = await openSlack({ speed: 1 });
    const { inbox, world, fake } = scene;
    const open = inbox.hold();
    world.tell({ text: '@moirai hello', channel: 'C1' });
    await until(() => inbox.tried.length === 1, 'the try');
    expect(fake.delivery.pending).toBe(2);
    open();
    await until(() => fake.delivery.pending === 0, 'both acknowledgements');
    expect(inbox.tried).toHaveLength(1);
  });
});

test('a reaction that Slack brings again is told of once', async () => {
  await using scene = await openSlack();
  const { inbox, world, fake } = scene;
  const messageId = world.tell({ text: 'look', channel: 'C1' }).ts;
  await world.happen('reaction', messageId);
  await until(() => inbox.events.length === 1, 'the event');
  await world.bringAgain();
  await until(() => fake.delivery.pending === 0, 'the acknowledgement');
  await world.happen('joined', messageId);
  await until(() => inbox.events.length > 1, 'the next event');
  expect(inbox.events.map(({ kind }) => kind)).toEqual(['reaction_added', 'member_joined']);
});

test('an inbox that can take nothing for a while keeps no channel waiting long afterwards', async () => {
  await using scene = await openSlack();
  const { inbox, world } = scene;
  inbox.refuseNext(100);
  for (let person = 0; person < 20; person += 1) await world.say({ text: `from ${person}`, person });
  const started = performance.now();
  await until(() => inbox.received.length === 20, 'all of them');
  // Each was refused five times, which is about a quarter of a minute of the platform's time.
  expect(performance.now() - started).toBeLessThan(patience(1000));
});

describe('a socket', () => {
  test('that Slack is going to end stays until another is open, and nothing is asked for', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, platform } = scene;
    await world.say({ text: 'before' });
    await until(() => inbox.texts.includes('before'), 'the first');
    fake.refresh();
    await until(() => fake.delivery.mostConnections === 2, 'the second socket');
    await world.say({ text: 'after' });
    await until(() => inbox.texts.includes('after') && fake.delivery.connections === 1, 'the first to end');
    expect(inbox.texts).toEqual(['before', 'after']);
    expect(platform.state.phase).toBe('connected');
    expect(fake.callsOf('conversations.history')).toEqual([]);
    expect(fake.callsOf('apps.connections.open')).toHaveLength(2);
  });

  test('that falls silent is noticed and made anew', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world } = scene;
    fake.fallSilent();
    await world.say({ text: 'is anybody there?' });
    await until(() => inbox.texts.includes('is anybody there?'), 'the message', 40_000);
    expect(fake.callsOf('apps.connections.open').length).toBeGreaterThan(1);
  }, 60_000);

  test('on which nonsense comes goes on', async () => {
    await using scene = await openSlack();
    const { fake, inbox, world, platform } = scene;
    const nonsense = [
      '{',
      '[]',
      'null',
      '{"type":"events_api"}',
      '{"type":"events_api","envelope_id":"x","payload":null}',
    ];
    const odd = [
      '{"type":"disconnected"}',
      '{"type":"close","envelope_id":5}',
      '{"type":"error","envelope_id":"e"}',
      '',
    ];
    for (const socket of fake.delivery.sockets) for (const frame of [...nonsense, ...odd]) socket.send(frame);
    for (const socket of fake.delivery.sockets) socket.send(Buffer.from([0, 1, 2]));
    await world.say({ text: 'sane' });
    await until(() => inbox.texts.includes('sane'), 'the message');
    expect([platform.state.phase, fake.delivery.connections]).toEqual(['connected', 1]);
  });

  test("whose address is somebody else's is not opened", async () => {
    const before = (fake: SlackServer) =>
      fake.failNext('apps.connections.open', { answer: { ok: true, url: 'ftp://elsewhere.test/' } });
    await using scene = await openSlack({ before, connected: false });
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.platform.state.problem).toContain('not its own');
  });
});

describe('a token', () => {
  test('of a person is refused with what to do', async () => {
    await using scene = await openSlack({ before: (fake) => (fake.isUserToken = true), connected: false });
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.platform.state.problem).toMatch(/token is that of a person.*bot token, xoxb-/);
    const failure = await scene.platform.identify!(AbortSignal.timeout(5000)).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', kind: 'forbidden' });
  });

  test('that is taken back is noticed when Slack tells of it, if that is true', async () => {
    await using scene = await openSlack();
    const { fake, world, platform } = scene;
    world.event({ type: 'tokens_revoked', tokens: { bot: ['UBOT'] } });
    await until(() => fake.callsOf('auth.test').length === 2, 'the question');
    await until(() => fake.delivery.pending === 0, 'the acknowledgement');
    expect(platform.state.phase).toBe('connected');
    fake.revoked = true;
    world.event({ type: 'app_uninstalled' });
    await until(() => platform.state.phase === 'failed', 'failed');
  });

  test('that may open no sockets says which scope it lacks', async () => {
    const answer = { ok: false, error: 'missing_scope', needed: 'connections:write' };
    const before = (fake: SlackServer) => fake.failNext('apps.connections.open', { answer });
    await using scene = await openSlack({ before, connected: false });
    await until(() => scene.platform.state.phase === 'failed', 'failed');
    expect(scene.platform.state.problem).toMatch(/^app_token: .*connections:write/);
  });

  test('that asks too often for a socket waits for as long as Slack says', async () => {
    const before = (fake: SlackServer) => fake.failNext('apps.connections.open', { retryAfter: '60' });
    const started = performance.now();
    await using scene = await openSlack({ before });
    // A minute of the platform's time.
    expect(performance.now() - started).toBeGreaterThan(590);
    expect(scene.fake.callsOf('apps.connections.open')).toHaveLength(2);
  });
});
