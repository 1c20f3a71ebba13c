import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { SendFailure } from '../../src/platforms/platform.ts';
import { openStore } from '../../src/store/open-store.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

async function deliveries(): Promise<unknown[]> {
  return (await scene.events()).filter(({ type }) => type.startsWith('delivery:'));
}

describe('a reply', () => {
  test('that is refused for now is sent again after as long as the platform asks', async () => {
    const tries: number[] = [];
    scene.pigeons.refuse = () => {
      tries.push(performance.now());
      return tries.length === 1 ? new SendFailure('too many', 1500) : null;
    };
    await scene.ask('1', 'hello');
    await scene.until('it is sent', () => scene.pigeons.sent.length === 1);
    const [first = 0, second = 0] = tries;
    expect(second - first).toBeGreaterThan(1400);
    await scene.until('it is told', async () => (await deliveries()).length === 1);
    expect(await deliveries()).toMatchObject([{ type: 'delivery:sent', attempts: 2, error: null }]);
  });

  test('that will never be taken is given up and told', async () => {
    scene.pigeons.refuse = () => new SendFailure('the chat is gone', null);
    await scene.ask('1', 'hello');
    await scene.until('it is told', async () => (await deliveries()).length === 1);
    expect(await deliveries()).toMatchObject([{ type: 'delivery:failed', attempts: 1, error: 'the chat is gone' }]);
  });

  test('that waits holds back those behind it, and nobody else’s', async () => {
    scene.pigeons.refuse = (_, text) => (text === 'did: a' ? new SendFailure('later', 300) : null);
    await scene.ask('1', 'a');
    await scene.ask('1', 'b');
    await scene.ask('2', 'c');
    await scene.until('the other is sent', () => scene.pigeons.textsTo('2').length === 1);
    expect(scene.pigeons.textsTo('1')).toEqual([]);
    scene.pigeons.refuse = null;
    await scene.until('both are sent', () => scene.pigeons.textsTo('1').length === 2);
    expect(scene.pigeons.textsTo('1')).toEqual(['did: a', 'did: b']);
  });

  test('that was being sent when its process died is sent again, and says that it may be a repetition', async () => {
    scene.pigeons.refuse = () => new SendFailure('away', 1);
    await scene.ask('1', 'hello');
    await scene.stop();
    await claimAndDie(scene.home);
    scene.pigeons.refuse = null;
    await scene.start();
    await scene.until('it is sent', () => scene.pigeons.sent.length === 1);
    expect(scene.pigeons.textsTo('1')[0]).toMatch(/^did: hello\n\n\(This may be a repetition/);
  });

  test('that was being sent when its gateway stopped is sent again, and says that it may be a repetition', async () => {
    scene.pigeons.silent = true;
    await scene.ask('1', 'hello');
    await scene.stop();
    scene.pigeons.silent = false;
    await scene.start();
    await scene.until('it is sent', () => scene.pigeons.sent.length === 1);
    expect(scene.pigeons.textsTo('1')[0]).toMatch(/^did: hello\n\n\(This may be a repetition/);
  });

  test('that could not leave before a stop leaves after the next start', async () => {
    scene.pigeons.refuse = () => new SendFailure('away', 500);
    await scene.ask('1', 'hello');
    await scene.stop();
    scene.pigeons.refuse = null;
    await scene.start();
    await scene.until('it is sent', () => scene.pigeons.sent.length === 1);
    expect(scene.pigeons.textsTo('1')).toEqual(['did: hello']);
  });
});

/** A process that took all there is to send, and was gone with the machine's last boot. */
async function claimAndDie(home: string): Promise<void> {
  const store = await openStore('sqlite:state.db', home, DEFAULT_RESET_RULES);
  const facts = { host: 'here', bootId: 'the boot before', pidSpace: null, pid: 1, pidStarted: null };
  const engine = await Engine.boot({
    store,
    ids: timeSortedIds(Date.now, Math.random),
    instance: { id: 'ins_dead', name: null, version: 'test', ...facts },
    leaseTtlMs: 3_600_000,
  });
  const limits = { again: false, limit: 9, retries: 9, repliesPerLane: 9 };
  const claim = async () => {
    const context = engine.commandContext();
    const claimed = await store.write('claimReplies', {
      context,
      token: context.commandId,
      platform: 'pigeon',
      ...limits,
    });
    return claimed.lanes;
  };
  for (let lanes = await claim(); lanes.length === 0; ) lanes = await claim();
  await store.close();
}
