import type { Actor, Area, Cast, Room } from './cast.ts';
import { chooseFit, type Fit, linesIn } from './fit.ts';
import { type AreaPlan, type Box, planRooms, type RoomPlan } from './layout.ts';
import type { View } from './view.ts';

/** An area as it stands on the canvas, in pixels of the canvas. */
export type Ground = ReturnType<typeof makeGround>;

function makeGround(area: Area, plan: AreaPlan, fit: Fit, view: View, unit: number) {
  const { x, y, width, height } = view.toScreen(plan.floor);
  const cellWidth = width / plan.columns;
  const cellHeight = height / plan.rows;
  const side = fit.grade.cell * fit.scale;
  const lines = linesIn(cellWidth, cellHeight, fit, unit);
  return {
    area,
    plan,
    box: view.toScreen(plan.box),
    /** The corner of its first cell, and the size of each. */
    x,
    y,
    cellWidth,
    cellHeight,
    fit,
    lines,
    ...fromTheMiddle(plan.columns),
    /** One side of a figure, and where it stands in its cell. */
    side,
    insetX: (cellWidth - side) / 2,
    insetY: (cellHeight - side - lines.above - lines.below) / 2 + lines.above,
  };
}

export interface Chamber {
  readonly room: Room;
  readonly box: Box;
  readonly grounds: readonly Ground[];
}

/** Who stands where on the canvas: the plan of the house, seen through the view. */
export class Stage {
  chambers: readonly Chamber[] = [];
  width = 1;
  height = 1;
  unit = 1;
  #plans: readonly RoomPlan[] = [];
  readonly #grounds = new Map<Area, Ground>();

  /** Gives every actor a place. */
  plan(cast: Cast): void {
    cast.reseat();
    const demands = cast.rooms.map(({ info, areas }) => ({
      id: info.id,
      areas: Array.from(areas.values(), ({ platform, capacity }) => ({ name: platform, capacity })).sort(byName),
    }));
    this.#plans = planRooms(demands, this.width, this.height, this.unit);
  }

  /** Looks at the plan anew. */
  behold(cast: Cast, view: View): void {
    this.#grounds.clear();
    this.chambers = cast.rooms.flatMap((room, index) => {
      const plan = this.#plans[index];
      return plan === undefined ? [] : [this.#chamber(room, plan, view)];
    });
  }

  groundOf(area: Area): Ground | undefined {
    return this.#grounds.get(area);
  }

  /** Where the figure of an actor stands; null when it has no place. */
  figureOf({ area, seat }: Actor): Box | null {
    const ground = this.#grounds.get(area);
    return ground === undefined || !isSeated(ground, seat) ? null : figureOf(ground, seat);
  }

  #chamber(room: Room, plan: RoomPlan, view: View): Chamber {
    const { unit } = this;
    const cells = plan.areas.map(({ floor, columns, rows }) => [
      (floor.width / columns) * view.zoom,
      (floor.height / rows) * view.zoom,
    ]);
    // All of a room are equally large: size must not look like a difference between people.
    const width = Math.min(...cells.map(([cell]) => cell as number));
    const height = Math.min(...cells.map(([, cell]) => cell as number));
    const fit = chooseFit(width, height, unit);
    const grounds = plan.areas.flatMap((areaPlan) => {
      const area = room.areas.get(areaPlan.name);
      return area === undefined ? [] : [makeGround(area, areaPlan, fit, view, unit)];
    });
    for (const ground of grounds) this.#grounds.set(ground.area, ground);
    return { room, box: view.toScreen(plan.box), grounds };
  }
}

/** The same order in every room. */
const byName = (one: { name: string }, other: { name: string }): number => (one.name < other.name ? -1 : 1);

/**
 * The column of each place of a row, and the place in the row of each column. Rows fill from the middle, so that a few
 * people in a wide room do not stand in its corner.
 */
export function fromTheMiddle(columns: number): { columnOf: number[]; placeOf: number[] } {
  const middle = (columns - 1) / 2;
  const columnOf = Array.from({ length: columns }, (_, column) => column).sort(
    (one, other) => Math.abs(one - middle) - Math.abs(other - middle) || one - other,
  );
  const placeOf: number[] = [];
  columnOf.forEach((column, place) => {
    placeOf[column] = place;
  });
  return { columnOf, placeOf };
}

/** Who sits in a column and row. */
export const seatAt = ({ plan, placeOf }: Ground, column: number, row: number): number =>
  row * plan.columns + (placeOf[column] ?? 0);

/** The whole cell of a seat, in whole pixels, so that neighbours never share one. */
export function cellOf(ground: Ground, seat: number): Box {
  const column = ground.columnOf[seat % ground.plan.columns] ?? 0;
  const row = Math.floor(seat / ground.plan.columns);
  const x = Math.round(ground.x + column * ground.cellWidth);
  const y = Math.round(ground.y + row * ground.cellHeight);
  return {
    x,
    y,
    width: Math.round(ground.x + (column + 1) * ground.cellWidth) - x,
    height: Math.round(ground.y + (row + 1) * ground.cellHeight) - y,
  };
}

/** Where the figure of a seat stands. */
export function figureOf(ground: Ground, seat: number): Box {
  const column = ground.columnOf[seat % ground.plan.columns] ?? 0;
  const row = Math.floor(seat / ground.plan.columns);
  return {
    x: Math.round(ground.x + column * ground.cellWidth + ground.insetX),
    y: Math.round(ground.y + row * ground.cellHeight + ground.insetY),
    width: ground.side,
    height: ground.side,
  };
}

/** Whether there is a place for this seat at all. */
export const isSeated = (ground: Ground, seat: number): boolean => seat < ground.plan.columns * ground.plan.rows;

export const meets = (one: Box, other: Box): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

/** Calls for every actor whose cell meets the box. */
export function eachWithin(ground: Ground, box: Box, visit: (actor: Actor) => void): void {
  const { columns, rows } = ground.plan;
  const left = Math.max(0, Math.floor((box.x - ground.x) / ground.cellWidth));
  const right = Math.min(columns - 1, Math.floor((box.x + box.width - ground.x) / ground.cellWidth));
  const top = Math.max(0, Math.floor((box.y - ground.y) / ground.cellHeight));
  const bottom = Math.min(rows - 1, Math.floor((box.y + box.height - ground.y) / ground.cellHeight));
  const { taken } = ground.area.seats;
  for (let row = top; row <= bottom; row++)
    for (let column = left; column <= right; column++) {
      const actor = taken[seatAt(ground, column, row)];
      if (actor !== undefined) visit(actor);
    }
}
