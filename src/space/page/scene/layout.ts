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

const inset = (box: Box, by: number): Box => ({
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

/** The columns and rows with which so many cells in a box are largest. */
export function gridFor(width: number, height: number, capacity: number): { columns: number; rows: number } {
  const guess = Math.sqrt((capacity * width) / height);
  let best = { columns: 1, rows: capacity };
  let largest = 0;
  for (let columns = Math.max(1, Math.floor(guess) - 2); columns <= guess + 2; columns++) {
    const rows = Math.ceil(capacity / columns);
    const side = Math.min(width / columns, height / rows);
    if (side <= largest) continue;
    largest = side;
    best = { columns, rows };
  }
  return best;
}

/** No room and no area gets less than this part of a fair share: its name needs space, too. */
const LEAST_SHARE = 0.3;

function shares(capacities: readonly number[]): number[] {
  const total = capacities.reduce((sum, capacity) => sum + capacity, 0);
  const least = Math.max(1, (total / capacities.length) * LEAST_SHARE);
  return capacities.map((capacity) => Math.max(capacity, least));
}

/** Rooms that fill the whole picture. `unit` is how many pixels of the picture make one of the page. */
export function planHouse(demands: readonly Demand[], width: number, height: number, unit: number): RoomPlan[] {
  const weights = shares(demands.map((room) => room.areas.reduce((sum, area) => sum + area.capacity, 0)));
  const whole = inset({ x: 0, y: 0, width, height }, (GAP / 2) * unit);
  return divide(whole, weights).map((piece, index) => {
    const { id, areas } = demands[index] as Demand;
    const box = inset(piece, (GAP / 2) * unit);
    return { id, box, areas: planAreas(inset(under(box, ROOM_HEADING * unit), 2 * unit), areas, unit) };
  });
}

function planAreas(inside: Box, areas: Demand['areas'], unit: number): AreaPlan[] {
  const boxes = divide(inside, shares(areas.map((area) => area.capacity)));
  return areas.map(({ name, capacity }, index) => {
    const box = boxes[index] as Box;
    const floor = under(inset(box, 2 * unit), AREA_HEADING * unit);
    return { name, box, floor, ...gridFor(floor.width, floor.height, capacity) };
  });
}
