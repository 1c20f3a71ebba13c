import { expect, test } from 'vitest';
import { Cast } from './cast.ts';
import { FAREWELL, VANISHING } from './motion.ts';
import type { SceneRoom, SceneSession, SceneWorld } from './port.ts';

const ROOM: SceneRoom = { id: 'room', name: 'clotho', live: true, note: 'ready' };
const ROOMS = [ROOM];

const session = (id: string, change: Partial<SceneSession> = {}): SceneSession => ({
  id,
  room: 'room',
  platform: 'cli',
  phase: 'idle',
  tool: null,
  label: id,
  ...change,
});

const world = (...sessions: SceneSession[]): SceneWorld => ({
  rooms: ROOMS,
  sessions: new Map(sessions.map((one) => [one.id, one])),
});

/** A cast in which so many stand at ease. */
function castOf(...sessions: SceneSession[]): Cast {
  const cast = new Cast();
  cast.show(world(...sessions), 0);
  cast.reseat();
  cast.takeChanges();
  return cast;
}

test('a session keeps its place while others come and go', () => {
  const [a, b, c] = [session('a'), session('b'), session('c')];
  const cast = castOf(a, b, c);
  cast.show(world(b, c), 1000);
  cast.dismiss(1000 + VANISHING);
  expect(cast.actors.has('a')).toBe(false);
  cast.show(world(b, c, session('d')), 3000);
  expect(['b', 'c', 'd'].map((id) => cast.actors.get(id)?.seat)).toEqual([1, 2, 0]);
});

test('only a session that is another object has changed', () => {
  const [a, b] = [session('a'), session('b')];
  const cast = castOf(a, b);
  cast.show(world(a, session('b', { phase: 'thinking' })), 10);
  const { actors, layout, repaint } = cast.takeChanges();
  expect(Array.from(actors, (actor) => actor.session.id)).toEqual(['b']);
  expect({ layout, repaint }).toEqual({ layout: false, repaint: false });
});

test('whoever has said farewell stays for a while, whichever word comes first', () => {
  for (const order of ['show', 'farewell'] as const) {
    const [a, b] = [session('a'), session('b')];
    const cast = castOf(a, b);
    if (order === 'show') cast.show(world(b), 100);
    cast.farewell({ id: 'a', reason: 'idle_expiry' }, 100);
    if (order === 'farewell') cast.show(world(b), 100);
    cast.dismiss(100 + FAREWELL - 1);
    expect(cast.actors.get('a')?.reason).toBe('idle_expiry');
    cast.dismiss(100 + FAREWELL);
    expect(cast.actors.has('a')).toBe(false);
    expect(cast.leaving.size).toBe(0);
  }
});

test('a session that is there again does not leave', () => {
  const cast = castOf(session('a'));
  cast.farewell({ id: 'a', reason: 'shutdown' }, 100);
  cast.show(world(session('a', { phase: 'resume_pending' })), 200);
  cast.dismiss(100_000);
  expect(cast.actors.get('a')?.gone).toBe(null);
});

test('a session that another gateway has taken over moves to its room', () => {
  const other: SceneRoom = { ...ROOM, id: 'other' };
  const cast = castOf(session('a'));
  cast.show({ rooms: [ROOM, other], sessions: new Map([['a', session('a', { room: 'other' })]]) }, 10);
  expect(cast.actors.get('a')?.area.room.info.id).toBe('other');
  expect(cast.rooms[0]?.areas.get('cli')?.seats.count).toBe(0);
});

test('nobody is lost whose room is not known', () => {
  const cast = castOf(session('a', { room: 'nowhere' }));
  expect(cast.actors.get('a')?.area.room.info.id).toBe('nowhere');
  expect(cast.rooms.length).toBe(2);
  cast.show({ rooms: [{ ...ROOM }], sessions: new Map([['a', session('a', { room: 'nowhere' })]]) }, 10);
  expect(cast.rooms.length).toBe(2);
});

test('a room grows when it is full, and shrinks when it has long been too large', () => {
  const many = Array.from({ length: 100 }, (_, index) => session(`${index}`));
  const cast = castOf(...many.slice(0, 5));
  cast.show(world(...many.slice(0, 6)), 10);
  expect(cast.takeChanges().layout).toBe(false);
  cast.show(world(...many), 20);
  expect(cast.takeChanges().layout).toBe(true);
  cast.reseat();
  cast.show(world(...many.slice(95)), 30);
  cast.dismiss(30 + VANISHING);
  cast.show(world(...many.slice(95)), 2000);
  expect(cast.takeChanges().layout).toBe(true);
  cast.reseat();
  expect(Array.from(cast.actors.values(), (actor) => actor.seat).sort()).toEqual([0, 1, 2, 3, 4]);
});

test('a hundred changes among ten thousand sessions are found in less than five milliseconds', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => session(`session-${index}`));
  const cast = castOf(...many);
  const costs = Array.from({ length: 20 }, (_, round) => {
    const next = world(...many.map((one, index) => (index % 100 === round ? { ...one, phase: 'tool' as const } : one)));
    const start = performance.now();
    cast.show(next, round);
    return performance.now() - start;
  });
  // The best of them: a machine that does something else meanwhile says nothing about the scene.
  expect(Math.min(...costs)).toBeLessThan(5);
});
