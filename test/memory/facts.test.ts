import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MemoryManager } from '../../src/memory/memory-manager.ts';
import type { MemorySession, MemoryTool } from '../../src/memory/provider.ts';
import { FactsMemory } from '../../src/memory/providers/facts.ts';
import { scopeOf } from '../../src/memory/scope.ts';
import { chatConversation, ENGINES } from '../support/stores.ts';
import { Scene, until } from './scene.ts';

function direct(userId: string): MemorySession {
  return {
    id: `ses_${userId}`,
    key: `agent:main:telegram:dm:${userId}`,
    kind: 'chat',
    platform: 'telegram',
    userId,
  };
}

const [ADA, BOB] = [direct('ada'), direct('bob')];

describe.each(ENGINES)('facts on %s', (engineName) => {
  let scene: Scene;
  let manager: MemoryManager;
  let told: number;
  beforeEach(async () => {
    scene = await Scene.open(engineName);
    told = 0;
    const facts = new FactsMemory(scene.engine.store);
    const hear = facts.onSessionEnd.bind(facts);
    facts.onSessionEnd = async (ended) => {
      await hear(ended);
      told += 1;
    };
    manager = await scene.remember([facts]);
  });
  afterEach(() => scene.close());

  function use(args: unknown, session: MemorySession): Promise<string> {
    const [tool] = manager.tools as [MemoryTool];
    return tool.run(args, { scope: scopeOf(session), sessionId: session.id, signal: new AbortController().signal });
  }

  test('are recalled by words, for whom they are about and nobody else', async () => {
    expect(await manager.remember('Ada dyes linen with woad', ADA)).toBe(true);
    await use({ action: 'remember', text: 'Bob is afraid of geese' }, BOB);
    expect(await manager.prefetch('Where does one buy woad?', ADA)).toContain('dyes linen');
    expect(await manager.prefetch('Where does one buy woad?', BOB)).toBeNull();
    expect(await manager.prefetch('geese and linen', BOB)).not.toContain('woad');
    expect(await use({ action: 'recall', text: 'woad' }, BOB)).toBe('Nothing.');
    for (const key of ['agent:main:telegram:group:7', 'agent:main:telegram:group:7:ada']) {
      expect(await manager.prefetch('woad and geese', { ...ADA, key })).toBeNull();
    }
    const child = { ...ADA, kind: 'child', key: 'agent:main:telegram:dm:child-1' } as const;
    expect(await manager.prefetch('woad and geese', child)).toBeNull();
  });

  test('are forgotten by the id that recalling gave, by their owner alone', async () => {
    await use({ action: 'remember', text: 'Ada dyes linen with woad' }, ADA);
    const [id = ''] = (await use({ action: 'recall', text: 'woad' }, ADA)).split(':');
    await expect(use({ action: 'forget', text: id }, BOB)).rejects.toMatchObject({ code: 'memory_entry' });
    await use({ action: 'forget', text: id }, ADA);
    expect(await manager.prefetch('woad', ADA)).toBeNull();
  });

  test('say what an ended session was about, once, however often its end is told', async () => {
    const conversation = chatConversation(1);
    const id = await scene.talk('how do I mend a spindle?', conversation);
    await scene.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    const session: MemorySession = {
      id,
      key: conversation.key,
      kind: 'chat',
      platform: 'telegram',
      userId: conversation.userId,
    };
    await until('it is remembered', async () => (await manager.prefetch('spindle', session)) !== null);
    await scene.engine.store.write('replay', { subscriber: 'memory:sqlite', fromSeq: 0 });
    await until('it came again', () => told === 2);
    const facts = await use({ action: 'recall', text: 'spindle' }, session);
    expect(facts.split('\n')).toHaveLength(1);
    expect(facts).toContain(`${id}): how do I mend a spindle?`);
  });
});
