import { describe, expect } from 'vitest';
import { DAY, HOUR, MINUTE, type Open, rulesWith, type Scene, sceneTests } from './scene.ts';

/** Which activity moves a deadline, what holds it off, and who expires when. */
export function deadlinesContract(open: Open): void {
  const test = sceneTests(open);

  describe('a deadline', () => {
    test('is the last activity of a user plus the idle time', async (scene) => {
      const { id, expiresAt, expiresCause } = await scene.start('42');
      expect([expiresAt, expiresCause]).toEqual([scene.clock.now() + DAY, 'idle']);
      scene.clock.advance(HOUR);
      const { session } = await scene.command(id, { name: 'touch', by: 'user' });
      expect(session).toMatchObject({ expiresAt: scene.clock.now() + DAY, lastActivityAt: scene.clock.now() });
    });

    test('is not moved by anything the system does', async (scene) => {
      const { id, expiresAt } = await scene.start('42');
      for (let hour = 1; hour < 24; hour++) {
        scene.clock.advance(HOUR);
        const { session } = await scene.command(id, { name: 'touch', by: 'system' });
        expect(session).toMatchObject({ expiresAt, lastSystemAt: scene.clock.now() });
        await scene.store.write('beat', { instance: scene.instance, ttlMs: 1000 * DAY });
      }
      expect((await scene.expire()).ended).toEqual([]);
      scene.clock.advance(HOUR);
      expect((await scene.expire()).ended).toEqual([id]);
    });

    test('of a session that only the system talks to passes once its turn is over', async (scene) => {
      const { id } = await scene.start('42');
      scene.clock.advance(23 * HOUR);
      const asked = await scene.ask('42', 'a reminder', { by: 'system' });
      expect(asked.session).toMatchObject({ id, expiresAt: null });
      scene.clock.advance(3 * HOUR);
      expect((await scene.expire()).ended).toEqual([]);
      const { session } = await scene.finish(asked);
      expect(session.expiresAt).toBeLessThan(scene.clock.now());
      expect((await scene.expire()).ended).toEqual([id]);
      expect(await scene.session(id)).toMatchObject({ endReason: 'idle_expiry' });
    });

    test('is held while a turn runs, however long, and begins again when it ends', async (scene) => {
      const asked = await scene.ask('42');
      scene.clock.advance(30 * DAY);
      expect((await scene.expire()).ended).toEqual([]);
      const { session } = await scene.finish(asked);
      expect(session).toMatchObject({ expiresAt: scene.clock.now() + DAY, lastActivityAt: scene.clock.now() });
      scene.clock.advance(DAY - 1);
      expect((await scene.expire()).ended).toEqual([]);
      scene.clock.advance(1);
      expect((await scene.expire()).ended).toEqual([asked.session.id]);
    });

    test('is held while a message waits', async (scene) => {
      const { session } = await scene.say('42', 'hello');
      scene.clock.advance(30 * DAY);
      expect((await scene.expire()).ended).toEqual([]);
      expect((await scene.session(session.id)).expiresAt).toBeNull();
    });

    test('is held by a cut turn for the resume window', async (scene) => {
      scene.store.useRules(rulesWith({ idleMs: 10 * MINUTE }));
      const asked = await scene.ask('42');
      const { session } = await scene.cut(asked.session.id);
      expect(session).toMatchObject({ expiresAt: scene.clock.now() + HOUR, expiresCause: 'idle' });
      scene.clock.advance(HOUR - 1);
      expect((await scene.expire()).ended).toEqual([]);
      scene.clock.advance(1);
      expect((await scene.expire()).ended).toEqual([session.id]);
      const turn = await scene.store.read('getTurn', { turnId: asked.turn.id });
      expect(turn).toMatchObject({ state: 'over', outcome: 'interrupted' });
    });

    test('is held while a background process lives', async (scene) => {
      const asked = await scene.ask('42');
      const { epoch, id } = asked.session;
      await scene.command(id, { name: 'background', running: 1, epoch });
      const { session } = await scene.finish(asked);
      expect(session).toMatchObject({ expiresAt: null, owner: 'one', background: 1 });
      scene.clock.advance(5 * DAY);
      expect((await scene.expire()).ended).toEqual([]);
      const after = await scene.command(id, { name: 'background', running: 0, epoch });
      expect(after.session).toMatchObject({ owner: null, expiresAt: session.lastActivityAt + DAY });
      expect((await scene.expire()).ended).toEqual([id]);
    });

    test('there is none for attached sessions, nor with mode none', async (scene) => {
      const attached = await scene.start('42', { kind: 'cli', attached: true });
      scene.store.useRules(rulesWith({ mode: 'none' }));
      const lasting = await scene.start('43');
      expect([attached.expiresAt, lasting.expiresAt]).toEqual([null, null]);
      expect(await scene.store.read('nextDeadline', {})).toBeNull();
    });

    test('the next one is known to the store and told with the commit', async (scene) => {
      const told: (number | null)[] = [];
      const stop = scene.store.onCommit(({ nextDeadline }) => told.push(nextDeadline));
      const first = await scene.start('42');
      scene.clock.advance(HOUR);
      await scene.start('43');
      stop();
      await scene.start('44');
      expect(told).toEqual([first.expiresAt, scene.clock.now() + DAY]);
      expect(await scene.store.read('nextDeadline', {})).toBe(first.expiresAt);
    });

    test('expiry goes in batches, the most overdue first, and says when more is left', async (scene) => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        ids.push((await scene.start(`4${i}`)).id);
        scene.clock.advance(MINUTE);
      }
      scene.clock.advance(DAY);
      const fresh = await scene.start('50');
      expect(await scene.expire(2)).toEqual({ ended: ids.slice(0, 2), more: true });
      expect(await scene.expire(2)).toEqual({ ended: ids.slice(2, 4), more: true });
      expect(await scene.expire(2)).toEqual({ ended: ids.slice(4), more: false });
      expect(await scene.expire(2)).toEqual({ ended: [], more: false });
      expect((await scene.session(fresh.id)).state).toBe('open');
    });

    test('that moved is looked at again when it is due, not before and not never', async (scene) => {
      const { id } = await scene.start('42');
      for (let day = 0; day < 3; day++) {
        scene.clock.advance(DAY - HOUR);
        await scene.command(id, { name: 'touch', by: 'user' });
        scene.clock.advance(HOUR);
        expect((await scene.expire()).ended).toEqual([]);
      }
      const next = await scene.store.read('nextDeadline', {});
      expect(next).toBe((await scene.session(id)).expiresAt);
      scene.clock.advance((next ?? 0) - scene.clock.now());
      expect((await scene.expire()).ended).toEqual([id]);
      expect(await scene.store.read('nextDeadline', {})).toBeNull();
    });

    test('that was held when the watcher looked is found again once it is free', async (scene) => {
      const { id } = await scene.start('42');
      scene.clock.advance(HOUR);
      const asked = await scene.ask('42');
      scene.clock.advance(5 * DAY);
      expect((await scene.expire()).ended).toEqual([]);
      expect(await scene.store.read('nextDeadline', {})).toBeNull();
      const { session } = await scene.finish(asked);
      expect(await scene.store.read('nextDeadline', {})).toBe(session.expiresAt);
      scene.clock.advance(DAY);
      expect((await scene.expire()).ended).toEqual([id]);
    });

    test('that comes earlier under new rules is kept to', async (scene) => {
      const { id } = await scene.start('42');
      scene.store.useRules(rulesWith({ idleMs: HOUR }));
      await scene.command(id, { name: 'touch', by: 'user' });
      expect(await scene.store.read('nextDeadline', {})).toBe(scene.clock.now() + HOUR);
      scene.clock.advance(HOUR);
      expect((await scene.expire()).ended).toEqual([id]);
    });

    test('of a suspended session passes like any other', async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'stuck_loop' });
      scene.clock.advance(DAY);
      expect((await scene.expire()).ended).toEqual([id]);
    });
  });

  describe('the daily reset', () => {
    test('in New York falls on 04:00 local time on both sides of the change to summer time', async (scene) => {
      scene.clock.set('2026-03-06T12:00:00Z');
      scene.store.useRules(rulesWith({ mode: 'daily', at: '04:00', timezone: 'America/New_York' }));
      expect(await dailyEnds(scene, 4)).toEqual([
        '2026-03-07T09:00:00.000Z',
        '2026-03-08T08:00:00.000Z',
        '2026-03-09T08:00:00.000Z',
        '2026-03-10T08:00:00.000Z',
      ]);
    });

    test('in New York falls on 04:00 local time on both sides of the change to winter time', async (scene) => {
      scene.clock.set('2026-10-30T12:00:00Z');
      scene.store.useRules(rulesWith({ mode: 'daily', at: '04:00', timezone: 'America/New_York' }));
      expect(await dailyEnds(scene, 3)).toEqual([
        '2026-10-31T08:00:00.000Z',
        '2026-11-01T09:00:00.000Z',
        '2026-11-02T09:00:00.000Z',
      ]);
    });

    test('comes once on the day whose clock skips it, and once on the day whose clock repeats it', async (scene) => {
      scene.clock.set('2026-03-07T12:00:00Z');
      scene.store.useRules(rulesWith({ mode: 'daily', at: '02:30', timezone: 'America/New_York' }));
      expect(await dailyEnds(scene, 2)).toEqual(['2026-03-08T07:30:00.000Z', '2026-03-09T06:30:00.000Z']);
      scene.clock.set('2026-10-31T12:00:00Z');
      scene.store.useRules(rulesWith({ mode: 'daily', at: '01:30', timezone: 'America/New_York' }));
      expect(await dailyEnds(scene, 2)).toEqual(['2026-11-01T05:30:00.000Z', '2026-11-02T06:30:00.000Z']);
    });
  });
}

/** Lives from daily reset to daily reset and tells when each came, to the millisecond. */
async function dailyEnds(scene: Scene, count: number): Promise<string[]> {
  const times: string[] = [];
  for (let i = 0; i < count; i++) {
    const { id, expiresAt, expiresCause } = await scene.start('42');
    expect(expiresCause).toBe('daily');
    scene.clock.advance((expiresAt ?? 0) - scene.clock.now() - 1);
    expect((await scene.expire()).ended).toEqual([]);
    scene.clock.advance(1);
    expect((await scene.expire()).ended).toEqual([id]);
    const end = (await scene.events(id)).at(-1);
    expect(end).toMatchObject({ reason: 'daily_reset', cause: null, trigger: 'watcher' });
    times.push(end?.at ?? '');
  }
  return times;
}
