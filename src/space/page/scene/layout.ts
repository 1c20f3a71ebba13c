export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What is to be housed: rooms in their order, in each the platforms and how many may come. */
export interface Demand {
  readonly id: string;
  readonly areas: readonly { readonly name: string; readonly capacity: number }[];
}

export interface AreaPlan {
  readonly name: string;
  readonly box: Box;
  /** Where figures stand: under the name. */
  readonly floor: Box;
  readonly columns: number;
  readonly rows: number;
}

export interface RoomPlan {
  readonly id: string;
  readonly box: Box;
  readonly areas: readonly AreaPlan[];
}

export const ROOM_HEADING = 40;
export const AREA_HEADING = 18;
const GAP = 8;

export const inset = (box: Box, by: number): Box => ({
  x: box.x + by,
  y: box.y + by,
  width: Math.max(1, box.width - 2 * by),
  height: Math.max(1, box.height - 2 * by),
});

const under = (box: Box, heading: number): Box => ({
  ...box,
  y: box.y + heading,
  height: Math.max(1, box.height - heading),
});

/** Cuts a box into pieces as large as they weigh, in their order, by halving its longer side again and again. */
export function divide(box: Box, weights: readonly number[]): Box[] {
  if (weights.length <= 1) return weights.map(() => box);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let cut = 1;
  let before = weights[0] ?? 0;
  while (cut < weights.length - 1 && before + (weights[cut] ?? 0) / 2 < total / 2) before += weights[cut++] ?? 0;
  const share = before / total;
  const wide = box.width >= box.height;
  const first = wide ? { ...box, width: box.width * share } : { ...box, height: box.height * share };
  const second = wide
    ? { ...box, x: box.x + first.width, width: box.width - first.width }
    : { ...box, y: box.y + first.height, height: box.height - first.height };
  return [...divide(first, weights.slice(0, cut)), ...divide(second, weights.slice(cut))];
}

/** Where there is space for names, a cell is a little higher than wide. */
const NAMED_CELL = 60 * 66;
const UPRIGHT = 1.12;

/** How wide a cell is, or how wide its height allows it to be. */
const sideOf = (width: number, height: number, columns: number, rows: number, upright: number): number =>
  Math.min(width / columns, height / rows / upright);

/** The columns and rows with which so many cells in a box are largest. */
export function gridFor(
  width: number,
  height: number,
  capacity: number,
  upright = 1,
): { columns: number; rows: number; cell: number } {
  const guess = Math.sqrt((capacity * width * upright) / height);
  let best = { columns: 1, rows: capacity, cell: 0 };
  for (let columns = Math.max(1, Math.floor(guess) - 2); columns <= guess + 2; columns++) {
    const rows = Math.ceil(capacity / columns);
    const cell = sideOf(width, height, columns, rows, upright);
    if (cell > best.cell) best = { columns, rows, cell };
  }
  return best;
}

/** No room and no area gets less than this part of a fair share: its name needs space, too. */
const LEAST_SHARE = 0.3;
const ROUNDS = 8;

function shares(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const least = Math.max(1e-9, (total / weights.length) * LEAST_SHARE);
  return weights.map((weight) => Math.max(weight, least));
}

interface Furnished {
  /** One side of its smallest cell; infinite when it has none. */
  readonly cell: number;
}

const smallest = (pieces: readonly Furnished[]): number => Math.min(...pieces.map(({ cell }) => cell));

/**
 * Divides a box so that cells are about equally large everywhere. What headings take and what is left over at the end
 * of rows is known only afterwards, so space moves from those with large cells to those with small ones, a few times.
 */
function balance<T extends Furnished>(box: Box, demand: readonly number[], furnish: (boxes: Box[]) => T[]): T[] {
  let weights = shares(demand);
  let pieces = furnish(divide(box, weights));
  let best = pieces;
  for (let round = 0; round < ROUNDS; round++) {
    const cells = pieces.map(({ cell }) => cell).filter(Number.isFinite);
    const mean = cells.reduce((sum, cell) => sum + cell, 0) / cells.length;
    weights = shares(weights.map((weight, at) => weight * grown(mean, pieces[at]?.cell ?? mean)));
    pieces = furnish(divide(box, weights));
    if (smallest(pieces) > smallest(best)) best = pieces;
  }
  return best;
}

const grown = (mean: number, cell: number): number => (Number.isFinite(cell) && cell > 0 ? (mean / cell) ** 1.2 : 1);

/** Rooms that fill the whole picture. `unit` is how many pixels of the picture make one of the page. */
export function planRooms(demands: readonly Demand[], width: number, height: number, unit: number): RoomPlan[] {
  const whole = inset({ x: 0, y: 0, width, height }, (GAP / 2) * unit);
  const wanted = demands.map((room) => room.areas.reduce((sum, area) => sum + area.capacity, 0));
  const cells = wanted.reduce((sum, capacity) => sum + capacity, 0);
  const upright = cells * NAMED_CELL * unit * unit < width * height ? UPRIGHT : 1;
  return balance(whole, wanted, (boxes) =>
    demands.map((demand, at) => planRoom(demand, inset(boxes[at] as Box, (GAP / 2) * unit), unit, upright)),
  );
}

function planRoom({ id, areas }: Demand, box: Box, unit: number, upright: number): RoomPlan & Furnished {
  const inside = inset(under(box, ROOM_HEADING * unit), 2 * unit);
  const plans = balance(
    inside,
    areas.map((area) => area.capacity),
    (boxes) =>
      areas.map(({ name, capacity }, at): AreaPlan & Furnished => {
        const area = boxes[at] as Box;
        const floor = under(inset(area, 3 * unit), AREA_HEADING * unit);
        return { name, box: area, floor, ...gridFor(floor.width, floor.height, capacity, upright) };
      }),
  );
  return { id, box, areas: plans, cell: smallest(plans) };
}
