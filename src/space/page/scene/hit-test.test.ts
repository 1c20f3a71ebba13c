import { expect, test } from 'vitest';
import { Cast } from './cast.ts';
import { actorAt, neighbour } from './hit-test.ts';
import type { SceneSession } from './port.ts';
import { cellOf, fromTheMiddle, Stage } from './stage.ts';
import { View } from './view.ts';

function stageOf(count: number): { stage: Stage; cast: Cast; view: View } {
  const cast = new Cast();
  const rooms = ['one', 'two'].map((id) => ({ id, name: id, live: true, note: '' }));
  const sessions = new Map(
    Array.from({ length: count }, (_, index): [string, SceneSession] => [
      `${index}`,
      {
        id: `${index}`,
        room: index % 3 === 0 ? 'one' : 'two',
        platform: index % 5 === 0 ? 'cli' : 'telegram',
        phase: 'idle',
        tool: null,
        label: '',
      },
    ]),
  );
  cast.show({ rooms, sessions }, 0);
  const stage = new Stage();
  const view = new View();
  Object.assign(stage, { width: 1000, height: 700 });
  stage.plan(cast);
  stage.behold(cast, view);
  return { stage, cast, view };
}

test('rows fill from the middle, and every column once', () => {
  expect(fromTheMiddle(5).columnOf).toEqual([2, 1, 3, 0, 4]);
  expect(fromTheMiddle(5).placeOf).toEqual([3, 1, 0, 2, 4]);
  expect(fromTheMiddle(1).columnOf).toEqual([0]);
});

test('everybody is found in the middle of their cell, however close one looks', () => {
  const { stage, cast, view } = stageOf(500);
  for (const factor of [1, 3]) {
    view.zoomAt(factor, 400, 300, 1000, 700);
    stage.behold(cast, view);
    for (const actor of cast.actors.values()) {
      const ground = stage.groundOf(actor.area);
      if (ground === undefined) throw new Error('nobody is without ground');
      const { x, y, width, height } = cellOf(ground, actor.seat);
      expect(actorAt(stage, x + width / 2, y + height / 2)).toBe(actor);
    }
  }
  expect(actorAt(stage, -5, -5)).toBe(null);
});

test('by arrow keys everybody can be reached', () => {
  const { stage, cast } = stageOf(60);
  const first = neighbour(stage, null, 'right');
  const reached = new Set([first]);
  for (const actor of reached)
    for (const direction of ['left', 'right', 'up', 'down'] as const) reached.add(neighbour(stage, actor, direction));
  expect(reached.size).toBe(cast.actors.size);
});

test('the house is never dragged out of sight', () => {
  const view = new View();
  expect(view.moveBy(50, 50, 1000, 700)).toBe(false);
  view.zoomAt(2, 0, 0, 1000, 700);
  view.moveBy(-5000, -5000, 1000, 700);
  expect(view.toScreen({ x: 1000, y: 700, width: 0, height: 0 })).toMatchObject({ x: 1000, y: 700 });
  expect(view.reset()).toBe(true);
  expect(view.toScreen({ x: 10, y: 20, width: 1, height: 1 })).toEqual({ x: 10, y: 20, width: 1, height: 1 });
});
