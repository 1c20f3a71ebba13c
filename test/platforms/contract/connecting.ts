import { expect, test } from 'vitest';
import { patience } from '../../support/patience.ts';
import { openStarted, type PlatformUnderTest, TestInbox, until } from './scene.ts';

/** How it stands with the server. */
export function connectingContract(under: PlatformUnderTest): void {
  const { plays } = under;

  test('it says what it can do, and how it stands: stopped, then connected, then stopped', async () => {
    await using driver = await under.makeDriver();
    const { platform } = driver;
    expect(platform.abilities).toEqual(under.abilities);
    expect(platform.state).toEqual({ phase: 'stopped', problem: null, lastSuccessAt: null });
    const inbox = new TestInbox();
    await platform.start(inbox);
    await until(() => platform.state.phase === 'connected', 'connected');
    expect(platform.state.problem).toBeNull();
    expect(platform.state.lastSuccessAt).not.toBeNull();
    expect(inbox.changes).toBeGreaterThan(0);
    await platform.stop();
    expect(platform.state.phase).toBe('stopped');
  });

  test('stopping takes no time, and a second time does nothing', async () => {
    await using scene = await openStarted(under);
    const started = performance.now();
    await scene.platform.stop();
    await scene.platform.stop();
    expect(performance.now() - started).toBeLessThan(patience(2000));
  });

  test('what was stopped starts again', async () => {
    await using scene = await openStarted(under);
    await scene.platform.stop();
    await scene.platform.start(scene.inbox);
    await until(() => scene.platform.state.phase === 'connected', 'connected again');
    await scene.driver.say({ text: 'still there?' });
    await until(() => scene.inbox.texts.includes('still there?'), 'the message');
  });

  if (plays.cuts) {
    test('a connection that is cut is made again, and nothing is lost or doubled', async () => {
      await using scene = await openStarted(under);
      const texts = Array.from({ length: 12 }, (_, index) => `message ${index}`);
      for (const [index, text] of texts.entries()) {
        await scene.driver.say({ text });
        if (index % 4 === 1) scene.driver.cut!();
      }
      await until(() => new Set(scene.inbox.texts).size === texts.length, 'all of them');
      await until(() => scene.platform.state.phase === 'connected', 'connected again');
      const once = scene.inbox.received.filter(
        ({ id }, index, all) => all.findIndex((other) => other.id === id) === index,
      );
      expect(once.map(({ text }) => text)).toEqual(texts);
    });
  }
}
