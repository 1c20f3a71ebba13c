import { expect, test } from 'vitest';
import { RemovedSubscribers } from '../../src/events/removed-subscribers.ts';
import { bootTestEngine, chatConversation, openTestStore } from '../support/stores.ts';

const HOUR = 3_600_000;

test('a removed hook keeps its subscription for a day, and one that is served elsewhere for ever', async () => {
  const { store, remove } = await openTestStore('sqlite');
  try {
    const engine = await bootTestEngine(store);
    for (const name of ['hook:gone', 'hook:here', 'webhook:gone']) {
      await store.write('subscribe', { name, patterns: ['session:start'], from: 'now' });
    }
    await engine.receive({ conversation: chatConversation(1), text: 'hi', originRef: null, by: 'user' });
    await store.write('subscribe', { name: 'hook:elsewhere', patterns: ['session:start'], from: 'now' });
    const clock = { elapsed: 0 };
    const timers = { elapsed: () => clock.elapsed, after: () => () => undefined };
    const removed = new RemovedSubscribers(store, timers, (name) => name.startsWith('hook:'));
    const names = async (hours: number): Promise<string[]> => {
      clock.elapsed = hours * HOUR;
      await removed.tidy(['hook:here'], Date.now() + clock.elapsed);
      return (await store.read('listSubscribers', {})).map(({ name }) => name);
    };
    const all = ['hook:elsewhere', 'hook:gone', 'hook:here', 'webhook:gone'];
    expect(await names(0)).toEqual(all);
    expect(await names(23.9)).toEqual(all);
    expect(await names(25)).toEqual(['hook:elsewhere', 'hook:here', 'webhook:gone']);
  } finally {
    await remove();
  }
});
