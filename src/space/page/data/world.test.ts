import { describe, expect, test } from 'vitest';
import { fastest } from '../../../../test/support/fastest.ts';
import { readDelta, readSnapshot } from '../protocol.ts';
import { nameOf, roomsOf } from './rooms.ts';
import type { Source } from './source.ts';
import { countAll, groupByStore } from './stores.ts';
import { World } from './world.ts';

const source = (id: string): Source => ({ id, name: id, base: `/${id}`, fetch: () => Promise.reject(new TypeError()) });

function makeWorld(...ids: string[]) {
  const frames: (() => void)[] = [];
  let now = 0;
  const world = new World({ frame: (show) => frames.push(show), now: () => now });
  for (const id of ids) world.add(source(id));
  /** The next frame of the screen, so much later. */
  const frame = (later = 1000): void => {
    now += later;
    for (const show of frames.splice(0)) show();
  };
  return { world, frame };
}

const gateway = (id: string, self: boolean, state = 'up') => ({ id, self, state });
const session = (id: string, more: Record<string, unknown> = {}) => ({ id, phase: 'idle', gateway: null, ...more });

function snapshot(self: string, sessions: unknown[], others: string[] = []) {
  const gateways = [gateway(self, true, 'ready'), ...others.map((id) => gateway(id, false))];
  return readSnapshot({ seq: 1, gateways, sessions, totals: { open: sessions.length, unowned: 0 }, more: false });
}

const delta = (more: Record<string, unknown>) => readDelta({ seq: 2, totals: { open: 1, unowned: 0 }, ...more });

describe('the world', () => {
  test('shows a session of a shared store once, from where it was seen first', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('b', snapshot('gw_b', [session('s1')], ['gw_a']));
    world.applySnapshot('a', snapshot('gw_a', [session('s1')], ['gw_b']));
    expect(world.sessions.size).toBe(1);
    expect(world.sessions.get('s1')?.source.id).toBe('b');
  });

  test('shows a session from its owner, which knows most of it', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('a', snapshot('gw_a', [session('s1')], ['gw_b']));
    world.applySnapshot('b', snapshot('gw_b', [session('s1', { gateway: 'gw_b', phase: 'tool' })], ['gw_a']));
    expect(world.sessions.get('s1')).toMatchObject({ source: { id: 'b' }, room: 'gw_b', view: { phase: 'tool' } });
  });

  test('moves a session to another source that tells of it when its source is gone', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('a', snapshot('gw_a', [session('s1'), session('s2')]));
    world.applySnapshot('b', snapshot('gw_b', [session('s1')]));
    world.gone('a', 'nobody answers');
    expect(world.sessions.get('s1')).toMatchObject({ source: { id: 'b' }, live: true });
    expect(world.sessions.get('s2')).toMatchObject({ source: { id: 'a' }, live: false });
  });

  test('keeps the sessions of a source that is gone as last known, until it is heard again', () => {
    const { world } = makeWorld('a');
    world.applySnapshot('a', snapshot('gw_a', [session('s1')]));
    world.gone('a', 'silent');
    expect(world.sessions.get('s1')?.live).toBe(false);
    world.heard('a');
    expect(world.sessions.get('s1')?.live).toBe(true);
  });

  test('lets nobody come back who has ended, however late another source is', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('a', snapshot('gw_a', [session('s1')]));
    world.applySnapshot('b', snapshot('gw_b', [session('s1')]));
    world.applyDelta('a', delta({ ended: [{ id: 's1', reason: 'user_reset', cause: null, at: 'now' }] }));
    expect(world.sessions.has('s1')).toBe(false);
    world.applyDelta('b', delta({ sessions: [session('s1')] }));
    world.applySnapshot('b', snapshot('gw_b', [session('s1')]));
    expect(world.sessions.has('s1')).toBe(false);
    expect(world.ends.map(({ id, reason }) => [id, reason])).toEqual([['s1', 'user_reset']]);
  });

  test('says farewell once for each end, however many sources tell of it', () => {
    const { world, frame } = makeWorld('a', 'b');
    const told: string[] = [];
    world.onFarewell((ends) => told.push(...ends.map(({ id }) => id)));
    const end = delta({ ended: [{ id: 's1', reason: 'reaped', cause: null, at: '' }] });
    world.applyDelta('a', end);
    world.applyDelta('b', end);
    frame();
    expect(told).toEqual(['s1']);
  });

  test('keeps a hundred ends', () => {
    const { world } = makeWorld('a');
    for (let index = 0; index < 150; index++) world.end({ id: `s${index}`, reason: 'reaped', cause: null, at: '' });
    expect(world.ends).toHaveLength(100);
    expect(world.ends[0]?.id).toBe('s149');
  });

  test('names those that are missing from a snapshot', () => {
    const { world } = makeWorld('a');
    world.applySnapshot('a', snapshot('gw_a', [session('s1'), session('s2')]));
    const gone = world.applySnapshot('a', snapshot('gw_a', [session('s2')]));
    expect(gone.map(({ id }) => id)).toEqual(['s1']);
    expect([...world.sessions.keys()]).toEqual(['s2']);
  });

  test('changes its number once in a frame, and the calm one four times a second', () => {
    const { world, frame } = makeWorld('a');
    frame(1000);
    const [version, calm] = [world.version.value, world.calm.value];
    for (let index = 0; index < 50; index++) world.applyDelta('a', delta({ sessions: [session(`s${index}`)] }));
    frame(16);
    expect([world.version.value, world.calm.value]).toEqual([version + 1, calm]);
    frame(16);
    expect(world.version.value).toBe(version + 1);
    frame(300);
    expect(world.calm.value).toBe(calm + 1);
  });

  test('leaves a session the same object while nothing of it is new', () => {
    const { world } = makeWorld('a');
    world.applySnapshot('a', snapshot('gw_a', [session('s1'), session('s2')]));
    const before = world.sessions.get('s1');
    world.applyDelta('a', delta({ sessions: [session('s2', { phase: 'thinking' })] }));
    expect(world.sessions.get('s1')).toBe(before);
  });

  test('takes ten thousand sessions and a thousand changes in little time', () => {
    const { world } = makeWorld('a');
    const many = Array.from({ length: 10_000 }, (_, index) => session(`s${index}`));
    world.applySnapshot('a', snapshot('gw_a', many));
    const ms = fastest(10, (batch) => {
      for (let index = 100 * batch; index < 100 * (batch + 1); index++) {
        world.applyDelta('a', delta({ sessions: [session(`s${index}`, { phase: 'tool' })] }));
      }
    });
    expect(ms).toBeLessThan(50);
    expect(world.sessions.size).toBe(10_000);
  });
});

describe('rooms', () => {
  const names = (world: World, inhabited: string[] = []) => roomsOf(world.sources, new Set(inhabited), Date.now());

  test('are the gateways of all sources, each once, and those that never answered', () => {
    const { world } = makeWorld('a', 'b', 'c');
    world.applySnapshot('a', snapshot('gw_a', [], ['gw_b']));
    world.applySnapshot('b', snapshot('gw_b', [], ['gw_a']));
    world.gone('c', 'nobody answers');
    const rooms = names(world);
    expect(rooms.map(({ id, live, note }) => [id, live, note])).toEqual([
      ['gw_a', true, 'ready'],
      ['gw_b', true, 'ready'],
      ['c', false, 'nobody answers'],
    ]);
  });

  test('are alive by hearsay while somebody of the same store says so', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('a', snapshot('gw_a', [], ['gw_b']));
    world.applySnapshot('b', snapshot('gw_b', []));
    world.gone('b', 'silent');
    expect(names(world).find(({ id }) => id === 'gw_b')).toMatchObject({
      live: true,
      note: expect.stringContaining('silent'),
    });
  });

  test('of gateways lost long ago are shown only with sessions in them', () => {
    const { world } = makeWorld('a');
    const lost = { id: 'gw_old', state: 'lost', last_heartbeat_at: '2020-01-01T00:00:00Z' };
    world.applySnapshot('a', readSnapshot({ seq: 1, gateways: [gateway('gw_a', true, 'ready'), lost], sessions: [] }));
    expect(names(world).map(({ id }) => id)).toEqual(['gw_a']);
    expect(names(world, ['gw_old']).map(({ id }) => id)).toEqual(['gw_a', 'gw_old']);
  });

  test('have the name of the gateway where the source has only an address', () => {
    const gateways = readSnapshot({ gateways: [{ id: 'g', self: true, name: 'clotho' }] }).gateways;
    expect(nameOf({ source: { ...source('x'), name: '127.0.0.1:8787' }, gateways })).toBe('clotho');
    expect(nameOf({ source: { ...source('x'), name: 'prod' }, gateways })).toBe('prod');
  });
});

describe('the leak counter', () => {
  test('counts a shared store once and separate stores each', () => {
    const { world } = makeWorld('a', 'b', 'c');
    const leaking = (self: string, others: string[], unowned: number) => ({
      ...snapshot(self, [], others),
      totals: { open: 5, unowned },
    });
    world.applySnapshot('a', leaking('gw_a', ['gw_b'], 2));
    world.applySnapshot('b', leaking('gw_b', ['gw_a'], 2));
    world.applySnapshot('c', leaking('gw_c', [], 1));
    expect(groupByStore(world.sources).map((group) => group.length)).toEqual([2, 1]);
    expect(countAll(world.sources)).toEqual({ open: 10, unowned: 3, unheard: [] });
  });

  test('names the sources it does not know about', () => {
    const { world } = makeWorld('a', 'b');
    world.applySnapshot('a', snapshot('gw_a', []));
    expect(countAll(world.sources).unheard).toEqual(['b']);
    world.gone('a', 'silent');
    expect(countAll(world.sources).unheard).toEqual(['a', 'b']);
  });
});

describe('a gateway of another version', () => {
  test('is read with defaults for what it does not say', () => {
    const { sessions, totals, odd } = readSnapshot({
      sessions: [{ id: 's1' }, { no: 'id' }, null, 7],
      gateways: 'none',
    });
    expect(sessions).toHaveLength(1);
    expect(sessions[0]).toMatchObject({ phase: 'idle', platform: 'unknown', tokens: { input: 0, output: 0 } });
    expect(totals).toBeNull();
    expect(odd).toContain('does not count');
  });

  test('keeps its own words for phases, and is labelled', () => {
    const { sessions, odd } = readSnapshot({
      sessions: [{ id: 's1', phase: 'dreaming', new: 1 }],
      totals: { open: 1, unowned: 0 },
    });
    expect(sessions[0]?.phase).toBe('dreaming');
    expect(odd).toContain('dreaming');
  });

  test.each([null, undefined, 'text', 7, [], { sessions: {} }])('is empty when it says %j', (raw) => {
    expect(readSnapshot(raw).sessions).toEqual([]);
    expect(readDelta(raw)).toMatchObject({ sessions: [], ended: [], removed: [], gateways: null });
  });
});
