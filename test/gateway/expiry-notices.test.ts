import { afterEach, describe, expect, test } from 'vitest';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import { expiredHereText, expiredText, rolledOverText } from '../../src/turns/texts.ts';
import { Scene } from './scene.ts';

const DAY = 86_400_000;

let scene: Scene;

afterEach(() => scene.close());

async function begin(notify?: string | boolean): Promise<void> {
  const told = notify === undefined ? {} : { notify };
  scene = await Scene.open({ sessions: { reset: { mode: 'idle', idle: '24h', ...told } } });
}

/** Somebody in a group where everybody has a session of their own. */
function member(user: string): ConversationRef {
  const key = `agent:main:pigeon:group:town:${user}`;
  return { key, kind: 'chat', platform: 'pigeon', userId: user, origin: { chat: 'town' }, attached: false };
}

async function saysInGroup(user: string, text: string): Promise<string> {
  const heard = await scene.gateway.conversations.receive({ conversation: member(user), text, originRef: null });
  if (heard.type !== 'turn') throw new TypeError('not a turn');
  await heard.channel.ended;
  return heard.received.session.id;
}

async function everythingExpires(): Promise<void> {
  scene.later(DAY);
  await scene.gateway.engine.expire('watcher');
}

/** What was told so far, once the subscriber has heard everything. */
async function told(chat: string): Promise<string[]> {
  await scene.until('everything is heard', async () => {
    const all = await scene.store.read('listSubscribers', {});
    return all.find(({ name }) => name === 'gateway.notices')?.lag === 0;
  });
  await scene.until(
    'everything is sent',
    async () => (await scene.store.read('countDeliveries', {})).pigeon === undefined,
  );
  return scene.pigeons.textsTo(chat).filter((text) => !text.startsWith('did: '));
}

describe('a session that expired', () => {
  test('is told with the next message by default, once, and not before', async () => {
    await begin();
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    await everythingExpires();
    expect(await told('1')).toEqual([]);
    await scene.ask('1', 'again');
    const notice = rolledOverText('idle', DAY, id);
    await scene.until('it is told', async () => (await told('1')).length > 0);
    await scene.ask('1', 'and again');
    expect(await told('1')).toEqual([notice]);
    expect(await scene.ask('1', `/resume ${id}`)).toContain('Back in: ');
  });

  test.each(['at_once', true])('is told at once with notify: %s', async (notify) => {
    await begin(notify);
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    await everythingExpires();
    await scene.until('it is told', async () => (await told('1')).length > 0);
    await scene.ask('1', 'again');
    expect(await told('1')).toEqual([expiredText('idle_expiry', DAY, id)]);
  });

  test.each(['never', false])('is not told with notify: %s', async (notify) => {
    await begin(notify);
    await scene.ask('1', 'hello');
    await everythingExpires();
    await scene.ask('1', 'again');
    expect(await told('1')).toEqual([]);
  });

  test('in a group is told to who writes next, and to nobody unasked', async () => {
    await begin();
    const ada = await saysInGroup('ada', 'hello');
    await saysInGroup('bob', 'hello');
    await everythingExpires();
    expect(await told('town')).toEqual([]);
    await saysInGroup('ada', 'again');
    await scene.until('it is told', async () => (await told('town')).length > 0);
    expect(await told('town')).toEqual([rolledOverText('idle', DAY, ada)]);
  });

  test('in a group is one notice at once, however many people have a session there', async () => {
    await begin('at_once');
    for (const user of ['ada', 'bob', 'cyd']) await saysInGroup(user, 'hello');
    await everythingExpires();
    await scene.until('it is told', async () => (await told('town')).length > 0);
    expect(await told('town')).toEqual([expiredHereText('idle_expiry', DAY)]);
  });

  test('after a greeting costs no second request to the model; after a conversation it is looked over', async () => {
    await begin();
    await scene.ask('1', 'hi');
    for (const text of ['one', 'two', 'three']) await scene.ask('2', text);
    const { id } = await scene.sessionOf('2');
    await everythingExpires();
    await scene.until('the conversation is looked over', () => scene.runner.considered.length > 0);
    await scene.until('everything is heard', async () => {
      const all = await scene.store.read('listSubscribers', {});
      return all.find(({ name }) => name === 'memory-review')?.lag === 0;
    });
    expect(scene.runner.considered.map(({ sessionId }) => sessionId)).toEqual([id]);
  });
});
