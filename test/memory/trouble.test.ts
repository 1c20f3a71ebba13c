import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { FinishedTurn, MemoryProvider, MemorySession, SessionSwitch } from '../../src/memory/provider.ts';
import { chatConversation, ENGINES } from '../support/stores.ts';
import { Recorder, Scene, textsOf, until } from './scene.ts';

const SESSION: MemorySession = {
  ...{ id: 'ses_1', key: 'agent:main:telegram:dm:1', kind: 'chat', platform: 'telegram', userId: 'ada' },
};

describe.each(ENGINES)('a memory on %s', (engineName) => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open(engineName);
  });
  afterEach(() => scene.close());

  test('that is down for a while gets everything when it returns, in order', async () => {
    const recorder = new Recorder();
    const plain = Object.assign(new Error('nobody home'), { code: 'subscriber_unavailable' });
    let problem: Error | null =
      engineName === 'sqlite' ? plain : new MoiraiError('subscriber_unavailable', 'nobody home');
    const hear = recorder.onSessionEnd.bind(recorder);
    recorder.onSessionEnd = (ended) => {
      if (problem !== null) throw problem;
      hear(ended);
    };
    await scene.remember([recorder], { delivery: { maxAttempts: 1 } });
    for (let i = 0; i < 100; i++) {
      await scene.talk(`words ${i}`, chatConversation(i % 5));
      await scene.engine.reset(chatConversation(i % 5));
    }
    // What a plain socket says is understood as well.
    problem = new TypeError('fetch failed');
    problem.cause = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    await until('it was tried', async () => ((await scene.subscriber('memory:recorder'))?.failures ?? 0) > 5);
    problem = null;
    await until('all is there', () => recorder.ends.length >= 100, 30_000);
    expect((await scene.subscriber('memory:recorder'))?.deadLetters).toBe(0);
    for (const [key, ends] of Map.groupBy(recorder.ends, ({ session }) => session.key)) {
      const chat = Number(key.split(':').at(-1));
      const expected = Array.from({ length: 20 }, (_, i) => `words ${chat + 5 * i}`);
      expect(ends.map((ended) => textsOf(ended)[0])).toEqual(expected);
    }
  });

  test('that always throws ends with dead letters, and another one hears everything at once', async () => {
    const recorder = new Recorder();
    const throws: MemoryProvider = {
      name: 'throws',
      onSessionEnd: () => {
        throw new TypeError('always');
      },
    };
    await scene.remember([throws, recorder], { delivery: { maxAttempts: 1 } });
    for (const chat of [1, 2, 3]) {
      const id = await scene.talk('hello', chatConversation(chat));
      await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    }
    await until('the other was told', () => recorder.ends.length === 3);
    await until('all is dead', async () => (await scene.subscriber('memory:throws'))?.deadLetters === 3);
  });

  test('that cannot be initialized at first hears everything later', async () => {
    const recorder = new Recorder();
    let tries = 0;
    const late: MemoryProvider = Object.assign(recorder, {
      initialize: () => {
        tries += 1;
        if (tries < 3) throw new TypeError('not yet');
      },
    });
    await scene.remember([late], { delivery: { maxAttempts: 1 } });
    const id = await scene.talk('hello');
    await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    await until('it was told', () => recorder.ends.length === 1);
    expect(tries).toBe(3);
  });

  test('hears of answered turns with their whole texts, and of conversations that go on elsewhere', async () => {
    const turns: FinishedTurn[] = [];
    const switches: SessionSwitch[] = [];
    const provider: MemoryProvider = {
      name: 'listener',
      syncTurn: (turn) => turns.push(turn),
      onSessionSwitch: (change) => switches.push(change),
    };
    await scene.remember([provider]);
    const long = 'a long story '.repeat(200);
    const first = await scene.talk(long);
    const { session: second } = await scene.engine.reset(chatConversation(1));
    const { session: third } = await scene.engine.continueFrom(first, 'resume', { trigger: 'command' });
    await until('it was told', () => switches.length === 2 && turns.length === 1);
    expect(turns[0]).toMatchObject({ sessionId: first, text: long, response: `heard: ${long}` });
    expect(switches.map(({ from, to, lineage }) => [from, to, lineage])).toEqual([
      [first, second.id, 'reset'],
      [first, third.id, 'resume'],
    ]);
  });

  test('is not told of cron jobs and webhooks unless it asks for them', async () => {
    const recorder = new Recorder('asks');
    const told: string[] = [];
    const plain: MemoryProvider = { name: 'plain', onSessionEnd: ({ session }) => told.push(session.kind) };
    const manager = await scene.remember([plain, recorder]);
    for (const kind of ['cron', 'webhook', 'chat'] as const) {
      const conversation = { ...chatConversation(kind), kind };
      await scene.engine.end(await scene.talk('hello', conversation), { reason: 'admin_close', trigger: 'api' });
    }
    await until('all was told', () => recorder.ends.length === 3 && told.length === 1);
    expect(told).toEqual(['chat']);
    await until('nothing is left', async () => (await scene.subscriber('memory:plain'))?.lag === 0);
    expect(await manager.prefetch('hello', { ...SESSION, kind: 'cron' })).toBeNull();
  });
});

describe('beside a turn, a memory', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(() => scene.close());

  test('that is slow is left out, and not waited for again right away', async () => {
    let asked = 0;
    const slow: MemoryProvider = {
      name: 'slow',
      prefetch: () => {
        asked += 1;
        return new Promise(() => undefined);
      },
    };
    const quick: MemoryProvider = { name: 'quick', prefetch: async (text) => `knows of ${text}` };
    const manager = await scene.remember([slow, quick], { prefetchMs: 150 });
    const started = performance.now();
    expect(await manager.prefetch('looms', SESSION)).toContain('knows of looms');
    expect(performance.now() - started).toBeGreaterThan(100);
    expect(await manager.prefetch('wheels', SESSION)).toContain('knows of wheels');
    expect(asked).toBe(1);
    expect(scene.logged.join()).toContain('going on without it');
  });

  test('that throws is left out', async () => {
    const fail = () => {
      throw new TypeError('broken');
    };
    const broken: MemoryProvider = {
      ...{ name: 'broken', prefetch: fail, systemPromptBlock: fail, onPreCompress: fail, onTurnStart: fail },
      ...{ initialize: fail, shutdown: fail },
    };
    const manager = await scene.remember([broken]);
    expect(await manager.prefetch('looms', SESSION)).toBeNull();
    expect(await manager.systemPromptBlock(SESSION)).toBeNull();
    expect(await manager.beforeCompress(SESSION, [])).toBeNull();
    manager.turnStarted(SESSION, { turnId: 'trn_1', text: 'looms' });
  });

  test('says the same at the start of a session for as long as it lives', async () => {
    let said = 'first';
    const manager = await scene.remember([{ name: 'changing', systemPromptBlock: () => said }]);
    expect(await manager.systemPromptBlock(SESSION)).toBe('first');
    said = 'second';
    expect(await manager.systemPromptBlock(SESSION)).toBe('first');
    expect(await manager.systemPromptBlock({ ...SESSION, id: 'ses_2' })).toBe('second');
    manager.forget(SESSION.id);
    expect(await manager.systemPromptBlock(SESSION)).toBe('second');
  });

  test('may not fill the prompt', async () => {
    const manager = await scene.remember([{ name: 'chatty', prefetch: () => 'words '.repeat(100_000) }]);
    expect((await manager.prefetch('looms', SESSION))?.length).toBeLessThan(10_000);
  });
});
