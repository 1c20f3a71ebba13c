import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { bootTestEngine, chatConversation, ENGINES, openTestStore, type TestStore } from '../support/stores.ts';

const MESSAGES = 120;

describe.each(ENGINES)('subscribers on %s', (engineName) => {
  let opened: TestStore;
  let engine: Engine;
  let dispatcher: Dispatcher;

  beforeEach(async () => {
    opened = await openTestStore(engineName);
    engine = await bootTestEngine(opened.store);
    dispatcher = makeDispatcher(engine);
  });
  afterEach(async () => {
    await dispatcher.stop();
    await opened.remove();
  });

  /** Talks in several conversations, one message at a time, and notes when each event was committed. */
  async function talk(messages: number, conversations: number): Promise<void> {
    for (let i = 0; i < messages; i++) {
      const received = await engine.receive({
        ...{ conversation: chatConversation(i % conversations), text: `message ${i}`, originRef: null, by: 'user' },
      });
      const hold = { sessionId: received.session.id, epoch: received.session.epoch };
      await engine.finish(hold, received.turn.id, { outcome: 'done', response: 'ok', model: null, usage: null });
    }
  }

  async function until(what: string, done: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
    const end = Date.now() + ms;
    while (!(await done())) {
      if (Date.now() > end) throw new TypeError(`waited too long until ${what}`);
      await new Promise((next) => setTimeout(next, 10));
    }
  }

  test('that hang, are late or throw keep nothing from a third one, and show in the listing', async () => {
    await dispatcher.subscribe({
      ...{ name: 'hangs', events: ['*'], timeoutMs: 3_600_000 },
      handle: () => new Promise(() => undefined),
    });
    await dispatcher.subscribe({
      ...{ name: 'late', events: ['*'], timeoutMs: 400, maxAttempts: 2 },
      handle: () => new Promise(() => undefined),
    });
    await dispatcher.subscribe({
      ...{ name: 'throws', events: ['*'], maxAttempts: 2 },
      handle: () => {
        throw new TypeError('always');
      },
    });
    const heard: string[] = [];
    const third = (event: MoiraiEvent): void => void heard.push(event.id);
    await dispatcher.subscribe({ name: 'third', events: ['agent:*'], handle: third });
    await talk(MESSAGES, 30);
    // Were it to wait for the hanging one, it would hear nothing for an hour.
    await until('the third has heard everything', () => heard.length >= MESSAGES * 2);
    for (const name of ['late', 'throws']) {
      await until(`${name} has dead letters`, async () => (await status(name)).deadLetters > 0);
      expect((await status(name)).lastError, name).not.toBeNull();
    }
    expect((await status('hangs')).lag).toBeGreaterThan(MESSAGES);
    // That it has heard the last one is written a moment later.
    await until('the third has nothing left', async () => (await status('third')).lag === 0);
    expect((await status('third')).deadLetters).toBe(0);
  });

  test('that were mended get everything by replay, in order', async () => {
    const heard: MoiraiEvent[] = [];
    let broken = true;
    await dispatcher.subscribe({
      ...{ name: 'mended', events: ['session:*', 'agent:*'], maxAttempts: 1 },
      handle: (event) => {
        if (broken) throw new TypeError('broken');
        heard.push(event);
      },
    });
    await talk(20, 4);
    await until('all is dead', async () => {
      const { lag, deadLetters } = await status('mended');
      return lag === 0 && deadLetters === 44;
    });
    const dead = await opened.store.read('listDeadLetters', { subscriber: 'mended', limit: 100 });
    expect(dead).toHaveLength(44);
    broken = false;
    await opened.store.write('replay', { subscriber: 'mended', fromSeq: null });
    await until('all was heard', () => heard.length >= 44);
    await until('nothing is dead', async () => (await status('mended')).deadLetters === 0);
    expect(heard).toHaveLength(44);
    const log = await opened.store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    for (const [key, events] of Map.groupBy(heard, (event) => event.session_key)) {
      const logged = log.events.map(({ event }) => event).filter((event) => event.session_key === key);
      const relevant = logged.filter((event) => event.type !== 'hook:failed');
      expect(events.map(({ id }) => id)).toEqual(relevant.map(({ id }) => id));
    }
  });

  test('that are stuck on one conversation hear the others', async () => {
    const heard: string[] = [];
    await dispatcher.subscribe({
      ...{ name: 'stuck', events: ['agent:end'], timeoutMs: 3_600_000, concurrency: 4 },
      handle: async (event) => {
        if (event.session_key?.endsWith(':0')) await new Promise(() => undefined);
        heard.push(event.session_key ?? '');
      },
    });
    await talk(1, 1);
    await talk(8, 8);
    await until('the others were heard', () => heard.length >= 7);
  });

  test('whose receiver is down wait without losing an attempt, and catch up', async () => {
    const { MoiraiError } = await import('../../src/errors/moirai-error.ts');
    let down = true;
    const heard: string[] = [];
    await dispatcher.subscribe({
      ...{ name: 'far', events: ['session:start'], maxAttempts: 1 },
      handle: (event) => {
        if (down) throw new MoiraiError('subscriber_unavailable', 'nobody home');
        heard.push(event.id);
      },
    });
    await talk(3, 3);
    await until('it failed', async () => (await status('far')).failures >= 3);
    down = false;
    await until('it caught up', () => heard.length === 3);
    expect((await status('far')).deadLetters).toBe(0);
  });

  test('get what was committed before they came back, from the store alone', async () => {
    const heard: string[] = [];
    const subscriber = { name: 'back', events: ['session:*'], handle: (event: MoiraiEvent) => heard.push(event.id) };
    await dispatcher.subscribe(subscriber);
    await dispatcher.stop();
    await talk(4, 2);
    const ended = await engine.end((await firstSession()).id, { reason: 'admin_close', trigger: 'api' });
    dispatcher = makeDispatcher(engine);
    await dispatcher.subscribe(subscriber);
    await until('it heard all', () => heard.length === 3);
    expect(heard).toContain(`${ended.session.id}:${ended.session.seq}`);
  });

  async function firstSession() {
    const filter = {
      states: [],
      kinds: [],
      platforms: [],
      reasons: [],
      key: null,
      user: null,
      text: null,
      since: null,
    };
    const { sessions } = await opened.store.read('listSessions', { ...filter, limit: 1, cursor: null });
    const [session] = sessions;
    if (session === undefined) throw new TypeError('no session');
    return session;
  }

  async function status(name: string) {
    const all = await opened.store.read('listSubscribers', {});
    const found = all.find((subscriber) => subscriber.name === name);
    if (found === undefined) throw new TypeError(`no subscriber ${name}`);
    return found;
  }
});

function makeDispatcher(engine: Engine): Dispatcher {
  return new Dispatcher({
    ...engine.queueDeps((error) => console.error(error)),
    store: engine.store,
  });
}
