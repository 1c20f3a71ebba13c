import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EndedSession, MemoryProvider, MemoryScope, MemorySession } from '../../src/memory/provider.ts';
import { HonchoMemory } from '../../src/memory/providers/honcho.ts';
import type { ServiceOptions } from '../../src/memory/providers/json-client.ts';
import { Mem0Memory } from '../../src/memory/providers/mem0.ts';
import { SupermemoryMemory } from '../../src/memory/providers/supermemory.ts';
import { type MemoryService, startHoncho, startMem0, startSupermemory } from '../fakes/memory-services.ts';
import { codeOf } from '../store/contract/code-of.ts';
import { chatConversation } from '../support/stores.ts';
import { Scene, until } from './scene.ts';

const KEY = 'a-very-secret-key';

interface Kept {
  readonly service: MemoryService;
  /** All that was kept, in the order it came. */
  texts(): string[];
}

interface Service {
  start(): Promise<Kept>;
  make(options: ServiceOptions): MemoryProvider;
}

const SERVICES: Record<string, Service> = {
  mem0: {
    make: (options) => new Mem0Memory(options),
    start: async () => {
      const service = await startMem0(KEY);
      return { service, texts: () => service.entries.map(({ text }) => text) };
    },
  },
  honcho: {
    make: (options) => new HonchoMemory(options),
    start: async () => {
      const service = await startHoncho(KEY);
      return { service, texts: () => [...service.sessions.values()].flat().map(({ content }) => content) };
    },
  },
  supermemory: {
    make: (options) => new SupermemoryMemory(options),
    start: async () => {
      const service = await startSupermemory(KEY);
      const lines = (content: string) => content.split('\n\n').map((line) => line.replace(/^\w+: /, ''));
      return { service, texts: () => [...service.documents.values()].flatMap(({ content }) => lines(content)) };
    },
  },
};

describe.each(Object.keys(SERVICES))('%s', (name) => {
  const { start, make } = SERVICES[name] as Service;
  let scene: Scene;
  let kept: Kept;
  let provider: MemoryProvider;
  beforeEach(async () => {
    scene = await Scene.open();
    kept = await start();
    provider = make({ baseUrl: kept.service.url, apiKey: KEY });
  });
  afterEach(async () => {
    await scene.close();
    await kept.service.close();
  });

  async function endAfter(text: string, chat: number): Promise<string> {
    const id = await scene.talk(text, chatConversation(chat));
    await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    return id;
  }

  test('keeps what was said, and recalls it for whom it is about', async () => {
    const manager = await scene.remember([provider]);
    await endAfter('I dye linen with woad', 1);
    await endAfter('I am afraid of geese', 2);
    await until('both are kept', () => kept.texts().length === 4);
    expect(kept.texts().toSorted()).toEqual(
      [
        'I dye linen with woad',
        'heard: I dye linen with woad',
        'I am afraid of geese',
        'heard: I am afraid of geese',
      ].toSorted(),
    );
    expect(await manager.prefetch('where to buy linen and woad?', sessionOf(1))).toContain('dye linen with woad');
    expect((await manager.prefetch('where to buy linen and woad?', sessionOf(2))) ?? '').not.toContain('woad');
    expect(await manager.prefetch('where to buy linen and woad?', sessionOf(3))).toBeNull();
    expect(JSON.stringify(kept.service.requests)).not.toContain('user-1');
  });

  test('gets everything after it was down, without a key or in ruins, and nothing of it twice', async () => {
    kept.service.status = 503;
    await scene.remember([provider], { delivery: { maxAttempts: 1 } });
    for (const [i, status] of [503, 401, 429].entries()) {
      kept.service.status = status;
      await endAfter(`words number ${i}`, i);
      await until('it was tried', () => kept.service.requests.length > i);
    }
    kept.service.status = null;
    await until('all is kept', () => kept.texts().length >= 6, 20_000);
    const subscriber = `memory:${name}`;
    expect((await scene.subscriber(subscriber))?.deadLetters).toBe(0);
    const before = kept.service.requests.length;
    await scene.engine.store.write('replay', { subscriber, fromSeq: 0 });
    await until('it came again', () => kept.service.requests.length >= before + 3);
    await until('it was told', async () => (await scene.subscriber(subscriber))?.lag === 0);
    expect(kept.texts()).toHaveLength(6);
    expect(scene.logged.join()).not.toContain(KEY);
  });

  test('that is not there at all is down, and one that refuses what it is sent has failed', async () => {
    const signal = new AbortController().signal;
    const nobody = make({ baseUrl: 'http://127.0.0.1:1', apiKey: KEY });
    expect(await codeOf(Promise.resolve(nobody.onSessionEnd?.(ended(), signal)))).toBe('subscriber_unavailable');
    kept.service.status = 422;
    expect(await codeOf(Promise.resolve(provider.onSessionEnd?.(ended(), signal)))).toBe('subscriber_failed');
  });

  test('is not asked to keep a session in which nobody said anything', async () => {
    await provider.onSessionEnd?.({ ...ended(), messages: [] }, new AbortController().signal);
    expect(kept.service.requests).toEqual([]);
  });
});

test('honcho takes long sessions and long messages piece by piece, and goes on where it stopped', async () => {
  const service = await startHoncho(KEY);
  try {
    const signal = new AbortController().signal;
    const provider = new HonchoMemory({ baseUrl: service.url, apiKey: KEY });
    await provider.initialize({}, signal);
    const {
      messages: [first],
    } = ended();
    if (first === undefined) throw new TypeError('nothing said');
    const messages = Array.from({ length: 250 }, (_, i) => ({ ...first, position: i + 1, text: `line ${i}` }));
    messages.push({ ...first, position: 251, text: 'x'.repeat(45_000) });
    const long = { ...ended(), messages };
    await provider.onSessionEnd({ ...long, messages: messages.slice(0, 120) }, signal);
    await provider.onSessionEnd(long, signal);
    const kept = service.sessions.get('ses_1')?.map(({ content }) => content) ?? [];
    expect(kept.slice(0, 250)).toEqual(messages.slice(0, 250).map(({ text }) => text));
    expect(kept.slice(250).join('')).toBe('x'.repeat(45_000));
  } finally {
    await service.close();
  }
});

function sessionOf(chat: number): MemorySession {
  const { key, userId } = chatConversation(chat);
  return { id: `ses_of_${chat}`, key, kind: 'chat', platform: 'telegram', userId };
}

function ended(): EndedSession {
  const scope: MemoryScope = { platform: 'telegram', userId: 'ada', sessionKey: 'agent:main:telegram:dm:1' };
  const session: EndedSession['session'] = {
    ...{ id: 'ses_1', key: scope.sessionKey, kind: 'chat', platform: 'telegram', userId: 'ada', title: null },
    ...{ startedAt: 0, endedAt: 1, parentId: null, lineage: null, removed: false },
  };
  const message = { sessionId: 'ses_1', position: 1, role: 'user', text: 'hello', at: 0, turnId: null, data: null };
  return { session, scope, reason: 'admin_close', cause: null, eventId: 'ses_1:9', messages: [message] };
}
