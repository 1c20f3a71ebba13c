import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toolPorts } from '../../src/gateway/tool-ports.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

function portsOf({ gateway: { engine } }: Scene) {
  return toolPorts({
    ...{ engine, rules: { groupPerUser: true, threadPerUser: false }, platform: () => null },
    agent: { workspace: { folder: join(scene.home, 'workspaces'), perConversation: true }, maxReceived: 1_000_000 },
    children: () => {
      throw new TypeError('nobody is delegated to');
    },
  });
}

/** What the agent of a conversation finds. */
async function find(chat: string, text: string): Promise<string[]> {
  const { id, platform, userId } = await scene.sessionOf(chat);
  const asker = { sessionId: id, turnId: 'trn', platform, userId };
  return ((await portsOf(scene).searchSessions?.(text, asker, 10)) ?? []).map((row) => row.text);
}

test('a search finds what was said in earlier sessions of the conversation', async () => {
  await scene.ask('1', 'the plums are ripe');
  await scene.ask('1', '/new');
  await scene.ask('1', 'hello');
  expect(await find('1', 'plums')).toContain('the plums are ripe');
});

test('a search finds what was said here, however much better others match', async () => {
  await scene.ask('1', 'once I mentioned that the plums are ripe');
  const other = (await scene.ask('2', 'hello')) === '' ? null : await scene.sessionOf('2');
  const rows = Array.from({ length: 300 }, () => ({ role: 'user', text: 'plums', turnId: null }));
  await scene.gateway.engine.appendBeside(other?.id ?? '', rows);
  expect(await find('1', 'plums')).toContain('once I mentioned that the plums are ripe');
});

test('and nothing of another conversation, even one that the same person began', async () => {
  await scene.ask('1', 'my secret is plums');
  const shared = { ...scene.conversation('1'), key: 'agent:main:pigeon:thread:room:2' };
  await scene.gateway.conversations.receive({ conversation: shared, text: 'hello all', originRef: null });
  const { id, userId } = (await scene.store.read('openSession', { key: shared.key })) ?? { id: '', userId: null };
  expect(userId).toBe('user-1');
  const asker = { sessionId: id, turnId: 'trn', platform: 'pigeon', userId };
  expect(await portsOf(scene).searchSessions?.('plums', asker, 10)).toEqual([]);
});
