import { expect, test } from 'vitest';
import { type Incoming, SendFailure } from '../../../src/platforms/platform.ts';
import { patience } from '../../support/patience.ts';
import { never, openStarted, type PlatformUnderTest, TestInbox, until } from './scene.ts';

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
      expect(firstOfEach(scene.inbox.received)).toEqual(texts);
    });
  }

  if (plays.backfill) {
    test('what was said while the connection was away and the server forgot it is asked for, each once and in order', async () => {
      await using scene = await openStarted(under);
      await scene.driver.say({ text: 'before' });
      await until(() => scene.inbox.texts.includes('before'), 'the first');
      scene.driver.invalidate!();
      scene.driver.cut!();
      const texts = Array.from({ length: 8 }, (_, index) => `behind ${index}`);
      for (const text of texts) await scene.driver.say({ text });
      await until(() => texts.every((text) => scene.inbox.texts.includes(text)), 'all of them');
      await scene.driver.say({ text: 'after' });
      await until(() => scene.inbox.texts.includes('after'), 'the last');
      expect(firstOfEach(scene.inbox.received)).toEqual(['before', ...texts, 'after']);
    });

    test('what was said while no process was there is asked for by the next one', async () => {
      await using scene = await openStarted(under);
      await scene.driver.say({ text: 'before' });
      await until(() => scene.inbox.texts.includes('before'), 'the first');
      await scene.platform.stop();
      scene.driver.invalidate!();
      await scene.driver.say({ text: 'behind' });
      const next = await scene.driver.restart!();
      const inbox = new TestInbox();
      await next.start(inbox);
      await until(() => inbox.texts.includes('behind'), 'what was said meanwhile');
      expect(firstOfEach(inbox.received).filter((text) => text !== 'before')).toEqual(['behind']);
    });
  }

  if (plays.credential) {
    test('it says who it is, and that it has failed once the server does not know the credential', async () => {
      await using scene = await openStarted(under);
      expect(await scene.platform.identify!(never)).not.toBe('');
      await scene.platform.stop();
      scene.driver.revoke!();
      const failure = await scene.platform.identify!(never).catch((thrown: unknown) => thrown);
      expect(failure).toBeInstanceOf(SendFailure);
      const next = await scene.driver.restart!();
      await next.start(new TestInbox());
      await until(() => next.state.phase === 'failed', 'failed');
      expect(next.state.problem).not.toBeNull();
      const told = [String(failure), next.state.problem, ...scene.driver.warnings].join('\n');
      for (const secret of scene.driver.secrets ?? []) expect(told).not.toContain(secret);
    });
  }
}

/** The texts in order, those that came again left out. */
function firstOfEach(received: readonly Incoming[]): string[] {
  const ids = received.map(({ id }) => id);
  return received.filter(({ id }, index) => ids.indexOf(id) === index).map(({ text }) => text);
}
