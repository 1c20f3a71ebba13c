import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { findHome } from '../../src/outbound/home-channel.ts';
import { SendFailure } from '../../src/platforms/platform.ts';
import { REPLY_SET_ASIDE_TEXT } from '../../src/turns/texts.ts';
import { PeopleScene } from './people-scene.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const broken = (): TypeError => new TypeError('x is not y');

/** Somebody else writes to the database. */
function damage(sql: string): void {
  const db = new DatabaseSync(join(scene.home, 'state.db'));
  db.exec(sql);
  db.close();
}

/** Waits for the events of work that was set aside. */
async function setAside(): Promise<MoiraiEvent[]> {
  const found = async (): Promise<MoiraiEvent[]> =>
    (await scene.events()).filter(({ type }) => type === 'work:set_aside');
  await scene.until('something is set aside', async () => (await found()).length > 0);
  return found();
}

describe('work that fails three times by a fault of the program is set aside, and what is behind it goes on:', () => {
  test('a reply, whose person is told', async () => {
    const tries: string[] = [];
    scene.pigeons.refuse = (_, text) => {
      if (!text.startsWith('did: poison')) return null;
      tries.push(text);
      return broken();
    };
    await scene.ask('1', 'poison');
    await scene.ask('1', 'behind it');
    await scene.until('what is behind it is sent', () => scene.pigeons.textsTo('1').includes('did: behind it'));
    await scene.until('the person is told', () => scene.pigeons.textsTo('1').includes(REPLY_SET_ASIDE_TEXT));
    expect(tries).toHaveLength(3);
    expect(await setAside()).toMatchObject([{ work: 'delivery', attempts: 3, error: 'x is not y' }]);
  });

  test('a turn, whose person is told', async () => {
    const { engine, turns } = scene.gateway;
    turns.pauseNew();
    const asked = { conversation: scene.conversation('1'), originRef: null, by: 'user', begin: false } as const;
    const { turn } = await engine.receive({ ...asked, text: 'poison' });
    await engine.receive({ ...asked, text: 'behind it' });
    const begin = engine.begin.bind(engine);
    const tries = vi.spyOn(engine, 'begin').mockImplementation(async (sessionId, turnId) => {
      if (turnId === turn.id) throw broken();
      return begin(sessionId, turnId);
    });
    turns.resume();
    for (const count of [1, 2, 3]) {
      await scene.until('it is tried', () => tries.mock.calls.length >= count);
      await turns.adopt();
    }
    await scene.until('what is behind it is answered', () => scene.pigeons.textsTo('1').includes('did: behind it'));
    expect(await setAside()).toMatchObject([{ work: 'turn', id: turn.id, attempts: 3, error: 'x is not y' }]);
    expect(scene.pigeons.textsTo('1')[0]).toContain('x is not y');
  });

  test('a tick of a job, whose next one is run', async () => {
    await scene.ask('1', '/cron add every 1h look');
    const start = vi.spyOn(scene.gateway.engine, 'startRun').mockRejectedValue(broken());
    scene.later(3_600_000);
    for (const tries of [1, 2, 3]) {
      await scene.startDueJobs();
      expect(start).toHaveBeenCalledTimes(tries);
      scene.later(60_000);
    }
    expect(await setAside()).toMatchObject([{ work: 'tick', attempts: 3, error: 'x is not y' }]);
    start.mockRestore();
    scene.later(3_600_000);
    await scene.startDueJobs();
    await scene.until('the next one is run', () => scene.pigeons.textsTo('1').some((text) => text.includes('look')));
  });
});

test('a message of a platform that cannot be taken three times is set aside, told and passed', async () => {
  const people = await PeopleScene.open([1, 2]);
  const { conversations } = people.gateway.gateway;
  const receive = conversations.receive.bind(conversations);
  const tries = vi.spyOn(conversations, 'receive').mockImplementation(async (message) => {
    if (message.text === 'poison') throw broken();
    return receive(message);
  });
  people.say(1, 'poison');
  people.say(1, 'behind it');
  people.say(2, 'hello');
  await people.sees(2, 'did: hello');
  expect(await people.sees(1, 'x is not y')).toContain('(internal)');
  await people.sees(1, 'did: behind it');
  expect(tries.mock.calls.filter(([{ text }]) => text === 'poison')).toHaveLength(3);
  const events = (await people.gateway.events()).filter(({ type }) => type === 'work:set_aside');
  expect(events).toMatchObject([{ work: 'turn', attempts: 3, error: 'x is not y' }]);
  await people.close();
});

describe('a row that cannot be read is set aside, and what is behind it goes on:', () => {
  test('a reply', async () => {
    scene.pigeons.refuse = () => new SendFailure('later', 100);
    await scene.ask('1', 'poison');
    await scene.ask('1', 'behind it');
    damage("UPDATE deliveries SET target = '5' WHERE text = 'did: poison'");
    scene.pigeons.refuse = null;
    await scene.until('what is behind it is sent', () => scene.pigeons.textsTo('1').length === 1);
    expect(scene.pigeons.textsTo('1')).toEqual(['did: behind it']);
    expect(await setAside()).toMatchObject([{ work: 'delivery', error: 'its row cannot be read' }]);
  });

  test('a tick of a job, which is paused', async () => {
    await scene.ask('1', '/cron add every 1h poison');
    await scene.ask('1', '/cron add every 1h look');
    damage("UPDATE jobs SET target = '5' WHERE prompt = 'poison'");
    scene.later(3_600_000);
    await scene.startDueJobs();
    await scene.until('the other is run', () => scene.pigeons.textsTo('1').some((text) => text.includes('look')));
    expect(await setAside()).toMatchObject([{ work: 'tick', error: 'its row cannot be read' }]);
    expect(await scene.ask('1', '/cron')).toContain('paused');
  });

  test('a tick of a job without a schedule, which is paused', async () => {
    await scene.ask('1', '/cron add every 1h poison');
    await scene.ask('1', '/cron add every 1h look');
    damage("UPDATE jobs SET schedule = '?', timezone = 'Nowhere' WHERE prompt = 'poison'");
    for (const runs of [1, 2]) {
      scene.later(3_600_000);
      await scene.startDueJobs();
      const told = (): number => scene.pigeons.textsTo('1').filter((text) => text.includes('look')).length;
      await scene.until('the other is run', () => told() === runs);
    }
    expect(scene.runner.tasks.filter(({ text }) => text?.includes('poison'))).toEqual([]);
    expect(await setAside()).toMatchObject([{ work: 'tick', error: 'its schedule cannot be read' }]);
    expect(await scene.ask('1', '/cron')).toContain('paused');
  });

  test('a tick that a process does not live to pass over is told nevertheless', async () => {
    await scene.ask('1', '/cron add every 1h poison');
    damage("UPDATE jobs SET schedule = '?' WHERE prompt = 'poison'");
    const { store } = scene;
    const write = store.write.bind(store);
    vi.spyOn(store, 'write').mockImplementation((name, args) =>
      name === 'scheduleJob' ? Promise.reject(new MoiraiError('store_closed', 'killed')) : write(name, args),
    );
    scene.later(3_600_000);
    await scene.startDueJobs();
    await scene.until('it is told', () => scene.pigeons.textsTo('1').some((text) => text.includes('cannot be read')));
    expect(await setAside()).toMatchObject([{ work: 'tick' }]);
  });
});

test('a home channel that cannot be read is none, and can be set again', async () => {
  await scene.store.write('keepSetting', { name: 'home_channel', value: '{' });
  expect(await findHome(scene.store)).toBeNull();
  await scene.ask('1', 'hello');
  expect(await scene.ask('1', '/sethome')).toContain('home channel');
  expect(await findHome(scene.store)).toMatchObject({ platform: 'pigeon', target: { chat: '1' } });
});

test('an event whose row cannot be read is set aside for its subscriber, which hears the next one', async () => {
  const heard: string[] = [];
  const listener = {
    name: 'listener',
    events: ['session:start'],
    handle: ({ id }: MoiraiEvent) => void heard.push(id),
  };
  await scene.gateway.dispatcher.register(listener);
  await scene.ask('1', 'hello');
  const first = await scene.sessionOf('1');
  damage(`UPDATE events SET body = '5' WHERE session_id = '${first.id}' AND type = 'session:start'`);
  await scene.ask('1', '/new');
  await scene.ask('1', 'hello');
  await scene.gateway.dispatcher.subscribe(listener);
  await scene.until('it hears the next one', () => heard.length === 1);
  expect(await setAside()).toMatchObject([{ work: 'event', error: 'its row cannot be read' }]);
});
