import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ReplyContext } from '../../../src/platforms/platform.ts';
import type { ModelScript } from '../../fakes/model-script.ts';
import { patience } from '../../support/patience.ts';
import { never, until } from '../contract/scene.ts';
import { PlatformScene } from '../gateway-suite.ts';
import { openScene, sentTo } from './scene.ts';
import { subject } from './subject.ts';
import { CHANNEL, type DiscordWorld, dmOf, person } from './world.ts';

const COMMANDS = [
  { name: 'new', summary: 'Begins a fresh session' },
  { name: 'Not for Discord', summary: 'x' },
  { name: 'status', summary: 'How it stands. '.repeat(20) },
];
const ANSWER_WITHIN_MS = 3000;

/** A command as a person gives it; the message that it becomes answers it. */
async function command(scene: Awaited<ReturnType<typeof openScene>>, name = 'new', text?: string) {
  const options = text === undefined ? [] : [{ type: 3, name: 'text', value: text }];
  const { interaction, id } = scene.fake.interact(dmOf(), person(), {
    ...{ type: 2, data: { id: '1437000000000000050', name, type: 1, options } },
  });
  const heard = () => scene.inbox.received.find(({ messageId }) => messageId === `interaction-${id}`);
  await until(() => heard() !== undefined, 'the command');
  const { messageId, reply } = heard()!;
  const context: ReplyContext = { messageId, data: reply?.data ?? {}, until: reply?.until ?? null };
  return { interaction, reply: context };
}

test('commands are registered with a field for words, without those that Discord cannot show, and not again unchanged', async () => {
  await using scene = await openScene();
  await scene.platform.offerCommands!(COMMANDS, never);
  await scene.platform.offerCommands!(COMMANDS, never);
  expect(scene.fake.commands.map(({ name }) => name)).toEqual(['new', 'status']);
  expect(scene.fake.commands[0]).toMatchObject({ type: 1, options: [{ type: 3, required: false }], contexts: [0, 1] });
  expect(String(scene.fake.commands[1]?.description).length).toBeLessThanOrEqual(100);
  expect(scene.fake.callsOf('PUT', /commands$/)).toHaveLength(1);
});

test('a command is acknowledged within three seconds while the inbox takes nothing, and answered where it was given', async () => {
  await using scene = await openScene();
  await scene.connected();
  const open = scene.inbox.hold();
  await scene.world.say({ text: 'a question before it' });
  await until(() => scene.inbox.tried.length === 1, 'the question');
  const givenAt = Date.now();
  const { interaction } = scene.fake.interact(dmOf(), person(), {
    type: 2,
    data: { name: 'new', type: 1, options: [] },
  });
  await until(() => interaction.acknowledgedAt !== null, 'the acknowledgement');
  expect(interaction.acknowledgedAt! - givenAt).toBeLessThan(ANSWER_WITHIN_MS);
  expect(interaction.callbacks).toEqual([5]);
  expect(scene.inbox.received).toEqual([]);
  open();
  await until(() => scene.inbox.texts.length === 2, 'the command');
  expect(scene.inbox.texts).toEqual(['a question before it', '/new']);
});

test('a command is acknowledged and answered at once while messages wait for the next second', async () => {
  await using scene = await openScene(1);
  await scene.connected();
  const people = Array.from({ length: 220 }, (_, each) => each);
  for (const each of people) await scene.world.say({ text: 'hi', person: each });
  const send = (each: number) => scene.platform.send(scene.world.place('dm', each), { text: 'x' }, never);
  const crowd = Promise.all(people.map(send));
  // The limit of the bot as a whole is not that of its answers to commands.
  await until(() => scene.world.shown().length >= 45, 'the first second');
  const givenAt = Date.now();
  const { interaction, reply } = await command(scene);
  await scene.platform.send(scene.world.place('dm'), { text: 'A fresh session.', reply }, never);
  expect(interaction.acknowledgedAt! - givenAt).toBeLessThan(patience(1000));
  expect(scene.world.shown().filter(({ text }) => text === 'x').length).toBeLessThan(220);
  await crowd;
});

test('the answer takes the place of what was deferred, once; what follows is a message of its own', async () => {
  await using scene = await openScene();
  await scene.connected();
  const { interaction, reply } = await command(scene, 'title', 'The cards');
  expect(scene.inbox.texts).toEqual(['/title The cards']);
  const place = scene.world.place('dm');
  const sent = await scene.platform.send(place, { text: 'Done.', key: 'dlv_1', reply }, never);
  expect(sent.messageId).toBe(interaction.original?.id);
  expect(scene.world.shown().map(({ text }) => text)).toEqual(['Done.']);
  expect(sentTo(scene.fake, dmOf())).toEqual([]);
  // The same again changes nothing, another one does not write over it.
  expect(await scene.platform.send(place, { text: 'Done.', key: 'dlv_1', reply }, never)).toEqual(sent);
  await scene.platform.send(place, { text: 'And more.', key: 'dlv_2', reply }, never);
  expect(scene.world.shown().map(({ text }) => text)).toEqual(['Done.', 'And more.']);
  const next = scene.restart();
  expect(await next.send(place, { text: 'In time.', key: 'dlv_3', reply }, never)).not.toEqual(sent);
});

test('an answer that a process before this one gave is not given again', async () => {
  await using scene = await openScene();
  await scene.connected();
  const { reply } = await command(scene);
  const place = scene.world.place('dm');
  scene.fake.failNext('PATCH /@original', 'lost');
  const failure = await scene.platform
    .send(place, { text: 'Done.', key: 'dlv_1', reply }, never)
    .catch((e: unknown) => e);
  expect(failure).toMatchObject({ kind: 'uncertain' });
  await scene.platform.stop();
  const next = scene.restart();
  await next.start(scene.inbox);
  await until(() => next.state.phase === 'connected', 'connected');
  await next.send(place, { text: 'Done.', key: 'dlv_1', reply }, never);
  expect(scene.world.shown().map(({ text }) => text)).toEqual(['Done.']);
});

test('a command that a process before this one acknowledged is answered by the next one where it was given', async () => {
  await using scene = await openScene();
  await scene.connected();
  const { interaction, reply } = await command(scene);
  await scene.platform.stop();
  const next = scene.restart();
  await next.start(scene.inbox);
  await until(() => next.state.phase === 'connected', 'connected');
  const place = scene.world.place('dm');
  const { messageId } = await next.send(place, { text: 'Done.', key: 'dlv_1', reply }, never);
  expect(messageId).toBe(interaction.original?.id);
  await next.send(place, { text: 'And more.', key: 'dlv_2', reply }, never);
  expect(scene.world.shown().map(({ text }) => text)).toEqual(['Done.', 'And more.']);
});

test('an answer that comes when the time for it is over is a message like any other', async () => {
  await using scene = await openScene();
  await scene.connected();
  const { reply } = await command(scene);
  const place = scene.world.place('dm');
  const until = Date.now() - 1;
  await scene.platform.send(place, { text: 'late', key: 'dlv_1', reply: { ...reply, until } }, never);
  expect(sentTo(scene.fake, dmOf()).map(({ content }) => content)).toEqual(['late']);
});

test('a command that Discord does not know any more is answered with a message like any other', async () => {
  await using scene = await openScene();
  await scene.connected();
  scene.fake.failNext('POST /callback', { status: 404, body: { code: 10062, message: 'Unknown interaction' } });
  const { reply } = await command(scene);
  await scene.platform.send(scene.world.place('dm'), { text: 'anyway', key: 'dlv_1', reply }, never);
  expect(scene.world.shown().map(({ text }) => text)).toEqual(['anyway']);
  expect(scene.warnings.join()).toContain('not acknowledged');
  for (const warning of scene.warnings) expect(warning).not.toContain('aW50ZXJhY3Rpb24');
});

test('a command that nobody answers does not wait for ever', async () => {
  await using scene = await openScene(2000);
  await scene.connected();
  const { interaction } = await command(scene);
  await until(() => interaction.original === null, 'the end of what was deferred');
  expect(scene.fake.historyOf(dmOf())).toEqual([]);
});

test('a button is acknowledged while the inbox takes nothing, and what comes of it is shown to who pressed it only', async () => {
  await using scene = await openScene();
  await scene.connected();
  const buttons = [[{ label: 'Yes', data: 'approve:1' }]];
  const { messageId } = await scene.platform.send(scene.world.place('group'), { text: 'Allow?', buttons }, never);
  const open = scene.inbox.hold();
  const message = scene.fake.historyOf(CHANNEL).find(({ id }) => id === messageId);
  const data = { custom_id: 'approve:1', component_type: 2 };
  const pressedAt = Date.now();
  const { interaction } = scene.fake.interact(CHANNEL, person(1), { type: 3, message, data });
  await until(() => interaction.acknowledgedAt !== null, 'the acknowledgement');
  expect(interaction.acknowledgedAt! - pressedAt).toBeLessThan(ANSWER_WITHIN_MS);
  expect(interaction.callbacks).toEqual([6]);
  await sleep(20);
  expect(interaction.shown).toBeNull();
  scene.inbox.answer = 'Thanks.';
  open();
  await until(() => interaction.shown !== null, 'what is shown');
  expect(interaction.shown).toBe('Thanks.');
  const [followUp] = scene.fake.callsOf('POST', /^\/webhooks\//);
  expect(followUp?.body).toMatchObject({ flags: 64, allowed_mentions: { parse: [] } });
  expect(scene.inbox.presses[0]).toMatchObject({ place: scene.world.place('group'), from: { id: person(1).id } });
});

test('at a gateway, /new is acknowledged within three seconds while a turn runs for long, and answered', async () => {
  const slow: ModelScript = () => ({ text: 'word '.repeat(200), betweenMs: 200 });
  await using scene = await PlatformScene.open(subject, subject.modes[0]!, {}, slow);
  const { fake } = scene.world as DiscordWorld;
  await scene.until('the commands', () => fake.commands.some(({ name }) => name === 'new'));
  await scene.world.say({ text: 'tell me a long story' });
  await scene.until('the turn', () => scene.model.requests.length > 0);
  const givenAt = Date.now();
  const { interaction } = fake.interact(dmOf(), person(), { type: 2, data: { name: 'new', type: 1, options: [] } });
  await scene.until('the acknowledgement', () => interaction.acknowledgedAt !== null);
  expect(interaction.acknowledgedAt! - givenAt).toBeLessThan(ANSWER_WITHIN_MS);
  await scene.until('the answer', () => String(interaction.original?.content).includes('fresh session'));
});

test('at a gateway, the command of a stranger in a server does not seem to be answered soon', async () => {
  const access = { allow: [], admins: [] };
  await using scene = await PlatformScene.open(subject, subject.modes[0]!, { access });
  const { fake } = scene.world as DiscordWorld;
  await scene.until('the commands', () => fake.commands.length > 0);
  const { interaction } = fake.interact(CHANNEL, person(), { type: 2, data: { name: 'status', type: 1, options: [] } });
  await scene.until('the acknowledgement', () => interaction.acknowledgedAt !== null);
  await scene.until('the end of what was deferred', () => interaction.original === null);
  expect(fake.historyOf(CHANNEL)).toEqual([]);
});
