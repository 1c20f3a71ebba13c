import type { Actor } from './cast.ts';
import type { Box } from './layout.ts';
import { cellOf, type Ground, isSeated, type Stage, seatAt } from './stage.ts';

const holds = (box: Box, x: number, y: number): boolean =>
  x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;

/** Who stands at a point of the canvas. Cells are a grid, so nobody has to be asked one by one. */
export function actorAt(stage: Stage, x: number, y: number): Actor | null {
  for (const { box, grounds } of stage.chambers) {
    if (!holds(box, x, y)) continue;
    for (const ground of grounds) if (holds(ground.box, x, y)) return seatedAt(ground, x, y);
  }
  return null;
}

function seatedAt(ground: Ground, x: number, y: number): Actor | null {
  const column = Math.floor((x - ground.x) / ground.cellWidth);
  const row = Math.floor((y - ground.y) / ground.cellHeight);
  const { columns, rows } = ground.plan;
  if (column < 0 || column >= columns || row < 0 || row >= rows) return null;
  return ground.area.seats.taken[seatAt(ground, column, row)] ?? null;
}

const AHEAD = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] } as const;
export type Direction = keyof typeof AHEAD;

/** All who stay, each with the middle of its cell. */
function* everybody(stage: Stage) {
  for (const { grounds } of stage.chambers)
    for (const ground of grounds)
      for (const actor of ground.area.seats.taken) {
        if (actor === undefined || actor.gone !== null || !isSeated(ground, actor.seat)) continue;
        const cell = cellOf(ground, actor.seat);
        yield { actor, x: cell.x + cell.width / 2, y: cell.y + cell.height / 2 };
      }
}

/** The nearest one that way; what is off to the side counts double. The first of all when nobody is selected. */
export function neighbour(stage: Stage, from: Actor | null, direction: Direction): Actor | null {
  const ground = from === null ? undefined : stage.groundOf(from.area);
  if (from === null || ground === undefined) return everybody(stage).next().value?.actor ?? null;
  const here = cellOf(ground, from.seat);
  const [aheadX, aheadY] = AHEAD[direction];
  let best: Actor | null = null;
  let nearest = Number.POSITIVE_INFINITY;
  for (const { actor, x, y } of everybody(stage)) {
    const dx = x - (here.x + here.width / 2);
    const dy = y - (here.y + here.height / 2);
    const ahead = dx * aheadX + dy * aheadY;
    // What is less than half a cell ahead stands beside, not before.
    if (actor === from || ahead < Math.min(here.width, here.height) / 2) continue;
    const distance = ahead + 2 * Math.abs(dx * aheadY + dy * aheadX);
    if (distance >= nearest) continue;
    nearest = distance;
    best = actor;
  }
  return best ?? from;
}
